#!/usr/bin/env python3
"""Trains tiny tokenizers, one or more of each kind of model and all kinds of
components between them, and records what Hugging Face's library makes of texts:

  Tokenizers.json   the tokenizers, texts, ids and decoded texts
  Megabytes.json    hashes of ids and decoded texts of texts.py's megabytes, for
                    these tokenizers and for those of the folders given

Needs the PyPI packages `tokenizers`, `sentencepiece` and `protobuf`.
usage: GenerateTokenizers.py [--goldens-only] [NAME=FOLDER...]
"""
import base64
import io
import json
import os
import struct
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

import texts

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = [texts.text(name)[:60000] for name in ("english", "code")]
LINES = [line for sample in SAMPLE for line in sample.split("\n")] + 5 * [
    "na\u00efve caf\u00e9 Z\u00fcrich \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u0442\u0435\u043a\u0441\u0442", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \u4e2d\u6587",
    "\ud55c\uad6d\uc5b4 \u0e01\u0e33 \U0001F642 \u0661\u0662 \u2460"]

TEXTS = [
    "", " ", "  ", "a", "Hello, world!", " Hello  world ", "the the the", "unlikely internationalization",
    "Kant\u014d KANTO\u0304 na\u00efve NAI\u0308VE", "don't we've I'd O'BRIEN", "a.b,c!!d??", "1234 5678.90 \u0661\u0662\u0663 \u00b2\u2167",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \u4e2d\u6587", "\u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u0442\u0435\u043a\u0441\u0442 mixed", "\u0e01\u0e33\u0e49 \u0915\u094d\u0937",
    "\U0001F642\U0001F642 \U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA", "e\u0301 \u00e9 n\u0303 \ufb01 \u2126 \u0130 \u03a3\u03c2",
    "tab\tnew\nline\r\nend", "\n\n\n", "\u00a0\u2003\u3000x", "\u200b\ufeff\u00ad\u0007\u0000z", "\ufffd\u2028\u2029", "\u2581x \u2581\u2581y",
    "<s>a</s>", "[CLS] a [SEP]", "x<tool>y <tool> z", "a  <mask>  b", "word<one>word <one> \u00e9<one>", "HELLO <UPPER> <upper>", "<0x0A>", "##a b##",
    "pneumonoultramicroscopicsilicovolcanoconiosis-and-more", "x" * 150, "ab" * 40 + " " + "ba" * 40, "_ _a_ __init__", "\u24b6\u24d0 \u203fx \U0001E030",
    "\u1c89\ua7cb \U00010d41 \U0001171e", "if (x == 0xFF) { return -1; }", "https://example.org/a?b=c#d", "\u0958 \u212b \u1e9e",
]


def bpe(size=400, **options):
    affixes = {k: v for k, v in options.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")}
    return models.BPE(**options), trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False, **affixes)


def train(model, trainer, normalizer=None, pre=None, decoder=None, post=None, added=(), lines=LINES):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(lines, trainer)
    if decoder:
        tokenizer.decoder = decoder
    if added:
        tokenizer.add_tokens(list(added))
    if post:
        tokenizer.post_processor = post(tokenizer)
    return json.loads(tokenizer.to_str())


# A model records this name: it has no folder, and training runs in one of its own.
RULES_FILE = "normalizer-rules.tsv"


def sentencepiece_model(**options):
    out = io.BytesIO()
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, RULES_FILE), "w") as f:
            f.write(RULES)
        os.chdir(folder)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(line for line in LINES if line.strip() and "\0" not in line),
                model_writer=out, minloglevel=2,
                **({"hard_vocab_limit": False} if options["model_type"] == "unigram" else {}), **options)
        finally:
            os.chdir(before)
    return out.getvalue()


RULES = "\n".join(
    f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}" for a, b in [
        ("\u00e9", "e"), ("e\u0301", "E"), ("\u2126", "\u03a9"), ("\ufb01", "fi"), ("\t", " "), ("\n", " "), ("\r", " "),
        ("\u3000", " "), ("\u00a0", " "), ("\u200b", ""), ("\ufeff", ""), ("\u0e33", "\u0e4d\u0e32"), ("\u1112\u1161", "\ud558"),
        ("\u30ab\u3099", "\u30ac"), ("\u2460", "1"), ("A", "a"), ("\ufffd", " ")])


def charsmap(model):
    # The field normalizer_spec.precompiled_charsmap, by the library's own parser.
    from sentencepiece import sentencepiece_model_pb2 as pb
    proto = pb.ModelProto()
    proto.ParseFromString(model)
    return proto.normalizer_spec.precompiled_charsmap


def make():
    out = {}
    cls_sep = lambda t: processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(x, t.token_to_id(x)) for x in ("[CLS]", "[SEP]")])
    pieces = trainers.WordPieceTrainer(vocab_size=500, show_progress=False,
                                       special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    out["wordpiece-bert"] = train(
        models.WordPiece(unk_token="[UNK]"), pieces, normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(), cls_sep)
    out["wordpiece-cased"] = train(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12), pieces,
        normalizers.BertNormalizer(lowercase=False, strip_accents=True, handle_chinese_chars=False, clean_text=True),
        pre_tokenizers.Whitespace(), decoders.WordPiece(cleanup=False),
        lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
        [AddedToken("<one>", single_word=True), AddedToken("<mask>", lstrip=True, rstrip=True)])
    unigram = lambda **more: trainers.UnigramTrainer(
        vocab_size=350, show_progress=False, unk_token="<unk>", special_tokens=["<s>", "</s>", "<unk>"], **more)
    rules = charsmap(sentencepiece_model(model_type="unigram", vocab_size=300, normalization_rule_tsv=RULES_FILE))
    out["unigram-precompiled"] = train(
        models.Unigram(), unigram(),
        normalizers.Sequence([normalizers.Precompiled(rules), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(), decoders.Metaspace(), None, [AddedToken("<mask>", lstrip=True)])
    bytes_ = train(models.Unigram(), unigram(), normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=False)]),
                   pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                   decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)]), None, ["<tool>"])
    bytes_["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
    bytes_["model"]["byte_fallback"] = True
    for token in bytes_["added_tokens"]:
        token["id"] += 256 if token["id"] > 2 else 0
    out["unigram-bytes"] = bytes_
    out["wordlevel"] = train(
        models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(
            vocab_size=300, show_progress=False, special_tokens=["<unk>", "<s>"]),
        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next")]),
        None, None, [AddedToken("<UPPER>", normalized=True)])
    out["ctc"] = train(
        models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(
            vocab_size=120, show_progress=False, special_tokens=["<pad>", "<unk>"]),
        normalizers.Replace(" ", "|"), pre_tokenizers.Sequence(
            [pre_tokenizers.CharDelimiterSplit("x"), pre_tokenizers.FixedLength(1)]), decoders.CTC())
    model, trainer = bpe(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True)
    out["bpe-suffix"] = train(
        model, trainer, normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.Split(
            Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)]),
        decoders.BPEDecoder(), lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 1)))
    model, trainer = bpe(end_of_word_suffix="</w>")
    out["bpe-clip"] = train(
        model, trainer, normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.Split(
            Regex(r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False)]), decoders.ByteLevel())
    model, trainer = bpe(unk_token="<unk>", continuing_subword_prefix="##")
    out["bpe-prefix"] = train(model, trainer, normalizers.StripAccents(), pre_tokenizers.Whitespace(), decoders.WordPiece())
    model, trainer = bpe(unk_token="<unk>")
    out["bpe-scripts"] = train(
        model, trainer, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.Strip()]),
        pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Digits(True)]),
        decoders.Sequence([decoders.Replace(Regex("[aeiou]"), "*"), decoders.Strip("a", 1, 0), decoders.Fuse(), decoders.Strip(" ", 1, 0)]))
    model, trainer = bpe(450, unk_token="<unk>", fuse_unk=True)
    llama = train(
        model, trainer, normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]), None,
        decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
        lambda t: processors.Sequence([processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]),
                                       processors.ByteLevel()]),
        [AddedToken("<tool>", normalized=False), AddedToken("<mask>", lstrip=True, rstrip=True, normalized=True),
         AddedToken("<one>", single_word=True, normalized=False)])
    llama["model"]["byte_fallback"] = True
    first = len(llama["model"]["vocab"])
    llama["model"]["vocab"].update({f"<0x{b:02X}>": first + b for b in range(256)})
    for token in llama["added_tokens"]:
        token["id"] += 256 if token["id"] >= first else 0
    out["bpe-llama"] = llama
    model, trainer = bpe(400)
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<s>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    o200k = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
             r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
             r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    out["bpe-o200k"] = train(
        model, trainer, None, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(o200k), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        decoders.ByteLevel())
    out["bpe-o200k"]["model"]["ignore_merges"] = True
    out["bpe-bloom"] = train(
        models.BPE(), trainer, None, pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)]), decoders.ByteLevel())
    out["bpe-words"] = train(
        models.BPE(), trainer, None, pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(r"\b\w\w\b|\W+(?=\d)|[[:punct:]]{2}|[\w&&[^aeiou]]{2}|\p{Han}+|\P{L}\p{^N}"), "contiguous"),
             pre_tokenizers.Digits(False), pre_tokenizers.ByteLevel(add_prefix_space=False)]), decoders.ByteLevel())
    out["bpe-spelled"] = train(models.BPE(), trainer, normalizers.ByteLevel(),
                               pre_tokenizers.Punctuation("contiguous"), decoders.ByteLevel())
    return out


def make_sentencepiece():
    common = dict(vocab_size=600, bos_id=1, eos_id=2, unk_id=0)
    return {
        "sp-unigram": sentencepiece_model(model_type="unigram", normalization_rule_tsv=RULES_FILE,
                                          user_defined_symbols=["<tool>", "\u00e9t\u00e9"], **common),
        "sp-bpe-bytes": sentencepiece_model(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                                            remove_extra_whitespaces=False, user_defined_symbols=["<tool>"], **common),
        "sp-unigram-suffix": sentencepiece_model(model_type="unigram", treat_whitespace_as_suffix=True, byte_fallback=True,
                                                 normalization_rule_name="identity", **common),
        "sp-bpe-bare": sentencepiece_model(model_type="bpe", add_dummy_prefix=False, normalization_rule_tsv=RULES_FILE, **common),
    }


def fnv(items):
    value = 0xCBF29CE484222325
    for item in items:
        value = ((value ^ item) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def words(data):
    data += b"\0" * (-len(data) % 8)
    return struct.unpack(f"<{len(data) // 8}Q", data)


def golden(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    return {"count": len(ids), "ids": fnv(ids), "decoded": fnv(words(decoded.encode()))}


def main():
    path = os.path.join(HERE, "Tokenizers.json")
    arguments = sys.argv[1:]
    if "--goldens-only" in arguments:
        arguments.remove("--goldens-only")
        old = json.load(open(path))
        tokenizers = {name: one["tokenizer"] for name, one in old["tokenizers"].items()}
        pieces = {name: base64.b64decode(one["model"]) for name, one in old["sentencepiece"].items()}
    else:
        tokenizers, pieces = make(), make_sentencepiece()
    cases = {"texts": TEXTS, "tokenizers": {}, "sentencepiece": {}}
    megabytes = {}
    for name, description in tokenizers.items():
        tokenizer = Tokenizer.from_str(json.dumps(description))
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        cases["tokenizers"][name] = {
            "tokenizer": description, "ids": ids,
            "special": tokenizer.encode(TEXTS[4]).ids,
            "decoded": [tokenizer.decode(one, skip_special_tokens=False) for one in ids],
            "skipped": [tokenizer.decode(one) for one in ids]}
    for name, model in pieces.items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        plain = [text for text in TEXTS if "\0" not in text and "<s>" not in text and "<unk>" not in text]
        ids = [processor.encode(text) for text in plain]
        cases["sentencepiece"][name] = {
            "model": base64.b64encode(model).decode(), "texts": plain, "ids": ids,
            "decoded": [processor.decode(one) for one in ids]}
    with open(path, "w") as f:
        json.dump(cases, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")
    for name, description in tokenizers.items():
        tokenizer = Tokenizer.from_str(json.dumps(description))
        megabytes[name] = {text: golden(tokenizer, texts.text(text)) for text in texts.TEXTS}
        print(name, megabytes[name], flush=True)
    for name, model in pieces.items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        megabytes[name] = {}
        for text in texts.TEXTS:
            lines = texts.text(text).replace("\0", "").split("\n")
            ids = [i for line in lines for i in processor.encode(line)]
            megabytes[name][text] = {"count": len(ids), "ids": fnv(ids)}
    for argument in arguments:
        name, folder = argument.split("=", 1)
        tokenizer = texts.load(os.path.join(folder, "tokenizer.json"))
        megabytes[name] = {text: golden(tokenizer, texts.text(text)) for text in texts.TEXTS}
    with open(os.path.join(HERE, "Megabytes.json"), "w") as f:
        json.dump(megabytes, f, indent=1)
        f.write("\n")


main()
