"""The fleet question: will these devices bring their cell down, and which setting prevents it?"""
