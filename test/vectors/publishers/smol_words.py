"""A stand-in for SmolVLM2's tokenizer: byte-level BPE with digits apart and no token at the beginning, with some hundred pieces."""

import json

from words import sentences

SIZE = 384
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>"]


def write(folder):
    """`tokenizer.json`, `tokenizer_config.json`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        sentences(), trainers.BpeTrainer(vocab_size=SIZE, special_tokens=SPECIAL, initial_alphabet=sorted(letters), show_progress=False)
    )
    made.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<|im_start|>", "eos_token": "<end_of_utterance>", "pad_token": "<|im_end|>", "unk_token": "<|endoftext|>"}
    config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "clean_up_tokenization_spaces": False, "model_max_length": 8192}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | names, indent=1) + "\n")
