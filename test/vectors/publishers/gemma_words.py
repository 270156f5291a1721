"""A stand-in for PaliGemma's tokenizer: the same kind of SentencePiece model (BPE, bytes for what it lacks, digits apart, runs of white
space as symbols) with some hundred pieces, and the `tokenizer.json` that transformers' rules derive from it. PaliGemma's file may not
be shipped here.
"""

import io
import json

import sentencepiece
from words import sentences

SIZE = 384


def sentencepiece_model():
    """The bytes of `tokenizer.model`."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line.replace("\n", " ") for line in sentences()), model_writer=out, model_type="bpe", vocab_size=SIZE,
        pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>", unk_piece="<unk>",
        user_defined_symbols=["<mask>", "\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "▁▁▁▁", "▁▁▁▁▁"],
        byte_fallback=True, split_digits=True, add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity",
        allow_whitespace_only_pieces=True, minloglevel=2, num_threads=1,
    )
    return out.getvalue()


def write(folder):
    """`tokenizer.model`, `tokenizer.json`, `tokenizer_config.json`."""
    from tokenizers import AddedToken, processors
    from transformers import GemmaTokenizer
    from transformers.convert_slow_tokenizer import generate_merges
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model()
    (folder / "tokenizer.model").write_bytes(model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    vocab = {piece.piece: index for index, piece in enumerate(proto.pieces)}
    # transformers' converter gives the tab the place of its byte; SentencePiece reads a tab as that byte.
    vocab = {("\t" if piece == "<0x09>" else piece): index for piece, index in vocab.items()}
    merges = generate_merges(vocab, None)
    made = GemmaTokenizer(vocab=vocab, merges=merges)._tokenizer
    symbols = [AddedToken(p.piece, normalized=False, special=p.type != 4) for p in proto.pieces if p.type in (2, 3, 4)]
    made.add_tokens(symbols)
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 2)])
    made.save(str(folder / "tokenizer.json"))
    names = {name: f"<{name[:3]}>" for name in ("pad_token", "eos_token", "bos_token", "unk_token")}
    config = {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "add_eos_token": False, "model_max_length": 10**9, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
