"""What is shown of results: sections for each kind of them, and the pictures in them for use in a notebook."""

from millpond.show.document import Missing

__all__ = ["Missing"]
