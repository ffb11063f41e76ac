"""The manual as a site: `python -m manual` stages the pages of `docs/` for mdBook and checks what comes out."""
