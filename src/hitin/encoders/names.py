"""The text encoders that have a name of their own. Any other is the name or folder of a transformer."""

from typing import Any

from hitin.encoders.bag import BagSettings
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.encoders.tfidf import TfidfSettings

TEXTRCNN = "textrcnn"
BAG = "bag"
TFIDF = "tfidf"
ENCODERS: dict[str, Any] = {TEXTRCNN: TextRCNNSettings, BAG: BagSettings, TFIDF: TfidfSettings}
