"""Fine-tune GPT-Neo on film reviews with the Hugging Face Trainer: an ordinary script, to be
profiled.

Runs by itself (`python finetune_gpt_neo.py --output-path out`) or by name (`profharness run
finetune-gpt-neo
--profile torch -- --max-steps 10`). Arguments and settings are those of the LUMI workshop's
  GPT-neo-IMDB-finetuning.py:
1.3 B parameters in bfloat16, global batch 32, 256 tokens, learning rate 2e-5. Where the hub's
  weights are not to be
had, a small configuration with random weights takes their place, and the script says so.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import argparse
import math
import socket
import urllib.parse
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from profharness_workloads.training import process_group, reviews

BASE = "EleutherAI/gpt-neo-1.3B"
SEED = 42
REACH_S = 3.0
TOKENS = 256
GLOBAL_BATCH = 32
EVALUATION_BATCH = 128
SYNTHETIC_REVIEWS = (800, 100)
VOCABULARY = 2048
SMALL = {
    "hidden_size": 128,
    "num_layers": 4,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 2]],
    "vocab_size": VOCABULARY,
}
PROMPT = "The movie was"


def arguments(words: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """The command line. Raises SystemExit(2) for a wrong one."""
    parser = argparse.ArgumentParser(
        prog="finetune-gpt-neo", description="Fine-tune GPT-Neo on film reviews."
    )
    parser.add_argument(
        "--model-name", default="gpt-imdb-model", help="folder of the result, below --output-path"
    )
    parser.add_argument(
        "--output-path", default="train-output", help="folder of checkpoints and result"
    )
    parser.add_argument(
        "--logging-path", default="train-logging", help="folder of TensorBoard's files"
    )
    parser.add_argument(
        "--num-workers", type=int, default=0, help="CPU processes that load data (LUMI: 7 per GCD)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument(
        "--max-steps", type=int, default=1000, help="10 are enough for a profile (default 1000)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=GLOBAL_BATCH, help="over all ranks (default 32)"
    )
    parser.add_argument(
        "--weights",
        choices=("auto", "hub", "random"),
        default="auto",
        help="auto: the hub's where they can be had, else random",
    )
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument(
        "--train-only", action="store_true", help="no evaluation, no saved model, no sample text"
    )
    return parser.parse_args(words)


class Parts(NamedTuple):
    """Model, tokenizer and texts; `origin` says where the weights are from."""

    model: Any
    tokens: Any
    texts: reviews.Texts
    origin: str


def from_hub() -> Parts:
    """Weights, tokenizer and IMDB. Raises what transformers and datasets raise where they cannot be
    had.
    """
    import transformers

    if not _in_reach(os.environ.get("HF_ENDPOINT", "https://huggingface.co")):
        # without a network the hub's libraries try again for minutes; with this they look into the
        # cache alone
        os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
        import huggingface_hub.constants

        huggingface_hub.constants.HF_HUB_OFFLINE = True
    tokens = transformers.AutoTokenizer.from_pretrained(BASE)
    tokens.pad_token = tokens.eos_token
    return Parts(
        transformers.AutoModelForCausalLM.from_pretrained(BASE), tokens, reviews.from_hub(), BASE
    )


def _in_reach(address: str) -> bool:
    """Whether anything answers there within a few seconds; through a proxy that cannot be told, and
    is taken as yes.
    """
    if os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY"):
        return True
    where = urllib.parse.urlsplit(address)
    try:
        with socket.create_connection((where.hostname or "", where.port or 443), timeout=REACH_S):
            return True
    except OSError:
        return False


def small() -> Parts:
    """A random-initialised GPT-Neo of 1.1 M parameters, with its own tokenizer on synthetic
    reviews.
    """
    import transformers

    texts = reviews.synthetic(*SYNTHETIC_REVIEWS, seed=SEED)
    tokens = reviews.tokenizer(texts.train, VOCABULARY)
    config = transformers.GPTNeoConfig(
        max_position_embeddings=TOKENS,
        bos_token_id=tokens.bos_token_id,
        eos_token_id=tokens.eos_token_id,
        **SMALL,
    )
    transformers.set_seed(SEED)
    return Parts(
        transformers.GPTNeoForCausalLM(config), tokens, texts, "a small GPT-Neo with random weights"
    )


def chosen(weights: str) -> Parts:
    """By --weights. Raises OSError or ConnectionError when the hub's were asked for and cannot be
    had.
    """
    if weights == "random":
        return small()
    try:
        return from_hub()
    except (
        OSError,
        ImportError,
        ValueError,
    ) as error:  # the hub's libraries raise all three for "not reachable"
        if weights == "hub":
            raise
        print(
            "finetune-gpt-neo: %s cannot be had (%s)"
            % (BASE, str(error).strip().split("\n")[0][:160]),
            file=sys.stderr,
        )
        return small()


class Windows:
    """Token windows as a torch dataset."""

    def __init__(self, rows: List[List[int]]):
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Any:
        return {"input_ids": self._rows[index]}


def settings(asked: argparse.Namespace, rank: process_group.Rank, *, on_gpu: bool) -> Any:
    """The Trainer's settings: the workshop's, the global batch divided over the ranks."""
    import transformers

    os.environ["TENSORBOARD_LOGGING_DIR"] = (
        asked.logging_path
    )  # the argument logging_dir is gone since transformers 5
    return transformers.TrainingArguments(
        output_dir=os.path.join(asked.output_path, asked.model_name),
        report_to=["tensorboard"] if _has_tensorboard() else [],
        per_device_train_batch_size=max(1, asked.batch_size // rank.world),
        per_device_eval_batch_size=min(EVALUATION_BATCH, 4 * asked.batch_size),
        learning_rate=2e-5,
        weight_decay=0.01,
        bf16=on_gpu,  # a CPU emulates it
        use_cpu=not on_gpu,
        max_steps=asked.max_steps,
        save_strategy="no" if asked.train_only else "steps",
        save_steps=100,
        save_total_limit=4,
        eval_strategy="no" if asked.train_only else "steps",
        eval_steps=200,
        dataloader_num_workers=asked.num_workers,
        dataloader_pin_memory=on_gpu,
        disable_tqdm=True,
        logging_steps=10,
        seed=SEED,
        ddp_find_unused_parameters=False,
    )


def _has_tensorboard() -> bool:
    import importlib.util

    return importlib.util.find_spec("tensorboard") is not None


def trainer_of(
    parts: Parts, asked: argparse.Namespace, rank: process_group.Rank, *, on_gpu: bool
) -> Any:
    """The Trainer over windows of 256 tokens; 1000 windows (or a tenth) are kept for evaluation."""
    import transformers

    rows = reviews.windows(parts.tokens, parts.texts.train, TOKENS)
    kept = min(1000, len(rows) // 10)
    return transformers.Trainer(
        model=parts.model,
        args=settings(asked, rank, on_gpu=on_gpu),
        train_dataset=Windows(rows[kept:]),
        eval_dataset=Windows(rows[:kept]),
        data_collator=transformers.DataCollatorForLanguageModeling(parts.tokens, mlm=False),
    )


def finish(trainer: Any, parts: Parts) -> None:
    """Perplexity, and a few words from the model."""
    loss = trainer.evaluate()["eval_loss"]
    print("perplexity: %.2f (loss %.4f)" % (math.exp(loss), loss))
    trainer.save_model()
    model = trainer.model
    inputs = parts.tokens(PROMPT, return_tensors="pt").to(model.device)
    generated = model.generate(
        **inputs,
        do_sample=True,
        max_new_tokens=40,
        num_return_sequences=2,
        pad_token_id=parts.tokens.eos_token_id,
    )
    for text in parts.tokens.batch_decode(generated, skip_special_tokens=True):
        print("sample: %s" % " ".join(text.split()))


def main(words: Optional[Sequence[str]] = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status: 0, 2 usage, 3 a library or the asked weights are missing."""
    asked = arguments(words)
    try:
        import torch
        import transformers
    except ImportError as error:
        print("finetune-gpt-neo: %s; pip install 'profharness[training]'" % error, file=sys.stderr)
        return 3
    transformers.logging.set_verbosity_error()
    rank = process_group.find(environ)
    on_gpu = asked.device == "auto" and torch.cuda.is_available()
    try:
        parts = chosen(asked.weights)
    except (OSError, ImportError, ValueError) as error:
        print("finetune-gpt-neo: %s" % str(error).strip().split("\n")[0], file=sys.stderr)
        return 3
    trainer = trainer_of(parts, asked, rank, on_gpu=on_gpu)
    result = trainer.train(resume_from_checkpoint=asked.resume or None)
    if rank.rank == 0:
        print("model: %s, text: %s" % (parts.origin, parts.texts.origin))
        print(
            "steps: %d of batch %d, %.2f samples/s, loss %.4f"
            % (
                result.global_step,
                asked.batch_size,
                result.metrics["train_samples_per_second"],
                result.training_loss,
            )
        )
    if not asked.train_only:
        finish(trainer, parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
