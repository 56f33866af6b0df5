"""Asks a service of `hitin serve` for the labels of texts, with nothing but Python's own library.

Start a service, then ask it from another terminal, or from another machine with `--url`:

    hitin serve MODEL
    python examples/ask_service.py "My parcel is late" "I was charged twice"
    python examples/ask_service.py --explain < texts.txt

Without texts, the lines of standard input are asked, many at a time. `HITIN_API_KEY` in the environment is the key.
The functions are made to be copied: they wait while a service loads, ask again where it is busy, and tell its errors.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

AT_ONCE = 64  # texts of a request
TRIES = 5


class RefusedError(Exception):
    """What the service says is wrong with a request."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="what to ask; otherwise lines of standard input")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="by its name, where several are served")
    parser.add_argument("--policy", help="how labels are chosen, if not as was tuned")
    parser.add_argument("--explain", action="store_true", help="also which words spoke for the labels")
    return parser.parse_args()


def ask(url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the service answers. A service that is busy, or still loading, is asked again in a while."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("HITIN_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = Request(url.rstrip("/") + path, json.dumps(body).encode(), headers)
    for tries_left in reversed(range(TRIES)):
        try:
            with urlopen(request, timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            if error.code not in (429, 503) or not tries_left:
                raise RefusedError(told(error)) from error
            time.sleep(float(error.headers.get("Retry-After") or 1))
        except URLError as error:
            raise RefusedError(f"nothing answers at {url} ({error.reason}); is hitin serve running?") from error
    raise AssertionError("the last try returns or raises")


def told(error: HTTPError) -> str:
    """The message of an error, and its remedy."""
    try:
        problem = json.load(error)["error"]
    except (ValueError, KeyError, TypeError):  # it comes from something in between
        return f"{error.code} {error.reason}"
    return f"{problem['message']}. {problem.get('remedy') or ''}".strip()


def batches(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), AT_ONCE):
        yield texts[start : start + AT_ONCE]


def words_for(url: str, text: str, shared: dict[str, Any]) -> Iterator[str]:
    """For each label the words that spoke for it most."""
    for label in ask(url, "/v1/explain", {"text": text, "most": 3, **shared})["explanations"]:
        words = [f"{word['text']} {word['weight']:+.2f}" for word in label["words"]]
        yield f"    {label['label']}: {', '.join(words)}"


def main() -> None:
    chosen = options()
    texts = chosen.texts or [line.strip() for line in sys.stdin if line.strip()]
    model = {"model": chosen.model} if chosen.model else {}
    policy = {"policy": chosen.policy} if chosen.policy else {}
    try:
        for batch in batches(texts):
            documents = ask(chosen.url, "/v1/predict", {"texts": batch, **model, **policy})["documents"]
            for text, document in zip(batch, documents, strict=True):
                scores = [f"{label} {score:.2f}" for label, score in document["scores"].items()]
                print(f"{text}\n  {' | '.join(document['paths']) or 'nothing'}  ({', '.join(scores)})")
                if chosen.explain:
                    print("\n".join(words_for(chosen.url, text, {**model, **policy})))
    except RefusedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
