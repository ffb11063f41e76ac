"""JSON as programs print it: numbers that are none are null."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(content: Any) -> str:
    """The text, with a line feed at its end."""
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(content: Any) -> Any:
    """JSON knows no number that is none."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
