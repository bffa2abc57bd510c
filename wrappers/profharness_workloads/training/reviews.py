"""Film reviews as training text: IMDB from the Hugging Face hub or its cache, else synthetic of the
same shape.

Synthetic reviews are drawn from a small vocabulary with IMDB's spread of lengths (median about 180
words, a tail beyond a thousand): the device does the same work, and there is little to be learnt.
"""

from __future__ import annotations

import random
from typing import Any, Iterator, List, NamedTuple, Sequence

DATASET = "stanfordnlp/imdb"
MEDIAN_WORDS = 180
SPREAD = 0.65  # of the logarithm of the number of words
LONGEST = 2500
PARTS = (
    ("the", "a", "this", "that", "every", "no", "one", "another"),
    ("old", "brilliant", "dull", "quiet", "strange", "slow", "bright", "early", "lost", "honest"),
    (
        "film",
        "plot",
        "actor",
        "scene",
        "script",
        "director",
        "score",
        "ending",
        "camera",
        "story",
        "voice",
        "crowd",
    ),
    (
        "holds",
        "leaves",
        "carries",
        "breaks",
        "follows",
        "finds",
        "misses",
        "makes",
        "turns",
        "shows",
    ),
    (
        "slowly",
        "again",
        "well",
        "badly",
        "at last",
        "too late",
        "by far",
        "for once",
        "in part",
        "with care",
    ),
)


class Texts(NamedTuple):
    """Reviews to train on and to evaluate with; `origin` says where they are from."""

    train: Sequence[str]
    evaluate: Sequence[str]
    origin: str


def from_hub() -> Texts:
    """IMDB: its 75,000 labelled and unlabelled training reviews and its test reviews. Raises what
    `datasets` raises.
    """
    import datasets

    splits = datasets.load_dataset(
        DATASET, split={"train": "train", "more": "unsupervised", "test": "test"}
    )
    return Texts(
        list(splits["train"]["text"]) + list(splits["more"]["text"]),
        splits["test"]["text"],
        "IMDB (%s)" % DATASET,
    )


def synthetic(train: int, evaluate: int, seed: int) -> Texts:
    """So many made-up reviews."""
    made = [review(random.Random(seed + number)) for number in range(train + evaluate)]
    return Texts(made[:train], made[train:], "synthetic reviews")


def review(chance: random.Random) -> str:
    """One review of log-normal length."""
    words = min(LONGEST, max(10, int(MEDIAN_WORDS * chance.lognormvariate(0, SPREAD))))
    return " ".join(_sentences(chance, words))


def _sentences(chance: random.Random, words: int) -> Iterator[str]:
    while words > 0:
        sentence = [chance.choice(part) for part in PARTS[: chance.randint(3, 5)]]
        words -= len(sentence)
        yield " ".join(sentence).capitalize() + "."


def tokenizer(texts: Sequence[str], vocabulary: int) -> Any:
    """A byte-level BPE tokenizer trained on these texts, for where the hub's cannot be had; ends
    and pads like GPT-2's.
    """
    import tokenizers
    import transformers

    end = "<|endoftext|>"
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        texts, vocab_size=vocabulary, special_tokens=[end], show_progress=False
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(trained.to_str()),
        bos_token=end,
        eos_token=end,
        pad_token=end,
    )


def windows(tokens: Any, texts: Sequence[str], length: int) -> List[List[int]]:
    """Each text, closed by the end mark, as token windows of at most `length`; a long text gives
    several.
    """
    token_windows: List[List[int]] = []
    for start in range(0, len(texts), 1000):
        block = [text + tokens.eos_token for text in texts[start : start + 1000]]
        token_windows += tokens(
            block, max_length=length, truncation=True, return_overflowing_tokens=True
        )["input_ids"]
    return token_windows
