#!/usr/bin/env python3
"""Writes CharacterClasses.inc: what the pieces of Hugging Face's `tokenizers` hold
single characters for, asked of the library itself, character by character. Each
piece brings its own Unicode version, so that no table of ours would be right
for all. Needs the PyPI package `tokenizers`.

usage: GenerateCharacterClasses.py > CharacterClasses.inc
"""
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

ALL = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
# The general categories and scripts as in the PCRE2 that the runtime links.
BASE = "14.0.0"
if unicodedata.unidata_version != BASE:
    sys.exit(f"needs a Python whose unicodedata is {BASE} (3.11)")

SCRIPTS = """Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum
Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid
Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian
Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari
Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian
Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul
Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited
Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana
Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha
Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic
Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui
Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
Nabataean Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham
Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian
Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya
Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang
Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian
Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le
Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh
Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi
Zanabazar_Square""".split()
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def regex_set(pattern, points):
    removed = normalizers.Replace(Regex(pattern), "")
    out = set()
    for i in range(0, len(points), 20000):
        part = points[i : i + 20000]
        kept = set(map(ord, removed.normalize_str("".join(map(chr, part)))))
        out |= set(part) - kept
    return out


def write_ranges(name, points, comment):
    print(f"\n// {comment}\nconstexpr CharacterRange {name}[] = {{")
    line = ""
    for begin, end in ranges(sorted(points)):
        item = f"{{{begin:#x}, {end:#x}}}, "
        if len(line) + len(item) > 78:
            print("  " + line.rstrip())
            line = ""
        line += item
    print("  " + line.rstrip() + "\n};")


def write_named(name, table, comment):
    print(f"\n// {comment}\nconstexpr NamedRange {name}[] = {{")
    for key, points in table.items():
        for begin, end in ranges(sorted(points)):
            print(f'  {{{begin:#x}, {end:#x}, "{key}"}},')
    print("};")


def kept(normalizer):
    return {c: normalizer.normalize_str("a" + chr(c) + "a")[1:-1] for c in ALL}


def main():
    print(
        "// Written by GenerateCharacterClasses.py with tokenizers "
        f"{tokenizers.__version__}; do not edit."
    )
    lower = normalizers.Lowercase()
    runs = []  # [begin, end, step, delta]
    special = []
    for c in ALL:
        text = lower.normalize_str(chr(c))
        if text == chr(c):
            continue
        if len(text) != 1:
            special.append((c, text))
            continue
        delta = ord(text) - c
        if runs and runs[-1][3] == delta and (
            c - runs[-1][1] == runs[-1][2]
            or (runs[-1][0] == runs[-1][1] and c - runs[-1][1] in (1, 2))
        ):
            runs[-1][2] = c - runs[-1][1]
            runs[-1][1] = c
        else:
            runs.append([c, c, 1, delta])
    assert special == [(0x130, "i\u0307")]
    print("\n// char::to_lowercase: every step-th character moves by delta.")
    print("// U+0130, whose lower case is two characters, is left out.")
    print("constexpr LowercaseRun LowercaseRuns[] = {")
    for begin, end, step, delta in runs:
        print(f"  {{{begin:#x}, {end:#x}, {step}, {delta}}},")
    print("};")

    bert = kept(normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False,
                                           strip_accents=False, lowercase=False))
    write_ranges("BertRemoved", [c for c in ALL if bert[c] == ""],
                 "Dropped by BertNormalizer's clean_text (and U+0000).")
    write_ranges("BertSpaces", [c for c in ALL if bert[c] == " "],
                 "Made a space by BertNormalizer's clean_text.")
    assert all(v in ("", " ", chr(c)) for c, v in bert.items())
    chinese = kept(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=True,
                                              strip_accents=False, lowercase=False))
    write_ranges("BertChinese", [c for c in ALL if chinese[c] == f" {chr(c)} "],
                 "Put between spaces by BertNormalizer's handle_chinese_chars.")
    marks = kept(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                            strip_accents=True, lowercase=False))
    write_ranges("BertMarks", [c for c in ALL if marks[c] == ""],
                 "Dropped by BertNormalizer's strip_accents, after NFD.")
    accents = kept(normalizers.StripAccents())
    write_ranges("Accents", [c for c in ALL if accents[c] == ""], "Dropped by StripAccents.")
    nmt = kept(normalizers.Nmt())
    write_ranges("NmtRemoved", [c for c in ALL if nmt[c] == ""], "Dropped by Nmt.")
    write_ranges("NmtSpaces", [c for c in ALL if nmt[c] == " "], "Made a space by Nmt.")

    def pieces(pre_tokenizer, c):
        return len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a"))

    write_ranges("Punctuation", [c for c in ALL if pieces(pre_tokenizers.Punctuation(), c) == 3],
                 "Punctuation to the pre-tokenizers Punctuation and BertPreTokenizer.")
    write_ranges("Numeric", [c for c in ALL if pieces(pre_tokenizers.Digits(), c) == 3],
                 "Digits to the pre-tokenizer Digits.")
    write_ranges("WordCharacters",
                 [c for c in ALL if pieces(pre_tokenizers.Whitespace(), c) == 1],
                 "\\w of the pre-tokenizer Whitespace and of single_word.")
    spaces = [c for c in ALL if pieces(pre_tokenizers.WhitespaceSplit(), c) == 2]
    assert spaces == [c for c in ALL if pieces(pre_tokenizers.Whitespace(), c) == 2]
    write_ranges("Spaces", spaces, "White space to all of them.")

    # Runs of one script, then which of the known scripts a run has.
    scripts = pre_tokenizers.UnicodeScripts()
    neutral = [c for c in ALL if [p for p, _ in scripts.pre_tokenize_str(
        "a" + chr(c) + "\u0431")] == ["a" + chr(c), "\u0431"]
        and [p for p, _ in scripts.pre_tokenize_str("a" + chr(c) + "a")] == ["a" + chr(c) + "a"]
        and [p for p, _ in scripts.pre_tokenize_str("\u0431" + chr(c) + "\u0431")]
        == ["\u0431" + chr(c) + "\u0431"]]
    is_neutral = set(neutral)
    classes = []  # (representative, members)
    for begin, end in ranges([c for c in ALL if c not in is_neutral]):
        text = "".join(chr(c) for c in range(begin, end + 1))
        for piece, _ in scripts.pre_tokenize_str(text):
            points = list(map(ord, piece))
            for representative, members in classes:
                if len(scripts.pre_tokenize_str(chr(representative) + piece[0])) == 1:
                    members += points
                    break
            else:
                classes.append((points[0], points))
    print("\n// The scripts of UnicodeScripts by number; characters of none are neutral.")
    print("constexpr ScriptRange UnicodeScripts[] = {")
    table = sorted((b, e, i + 1) for i, (_, members) in enumerate(classes)
                   for b, e in ranges(sorted(members)))
    for begin, end, script in table:
        print(f"  {{{begin:#x}, {end:#x}, {script}}},")
    print("};")

    # The regex engine (Oniguruma) knows newer characters than PCRE2.
    new = [c for c in ALL if unicodedata.category(chr(c)) == "Cn"]
    write_named("NewCategories",
                {k: regex_set(r"\p{%s}" % k, new) for k in CATEGORIES},
                f"General categories of characters that Unicode {BASE} does not have.")
    write_named("NewScripts", {k: regex_set(r"\p{%s}" % k, new) for k in SCRIPTS},
                f"Their scripts, as far as Unicode {BASE} has the script.")
    # Between letters none has.
    moved = {}
    for k in CATEGORIES:
        old = {c for c in ALL if unicodedata.category(chr(c)) == k}
        moved[k] = regex_set(r"\p{%s}" % k, ALL) - set(new) - old
    write_named("MovedCategories", moved, "Characters that have moved to another category since.")
    print("\nconstexpr const char *ScriptNames[] = {")
    for k in SCRIPTS:
        print(f'  "{k}",')
    print("};")
    for k in sorted({k[0] for k in CATEGORIES}):
        old = {c for c in ALL if unicodedata.category(chr(c))[0] == k and unicodedata.category(chr(c)) != "Cn"}
        both = "|".join(r"\p{%s}" % c for c in CATEGORIES if c[0] == k)
        if changed := [hex(c) for c in old ^ (regex_set(both, ALL) - set(new))]:
            sys.exit(f"category {k} of {changed[:5]} changed: additions do not tell")
    write_ranges("RegexWordCharacters", regex_set(r"\w", ALL), "\\w of the regex engine.")

    # The normal forms are of an older Unicode: characters with a combining class
    # or a decomposition that it does not know stand apart from their neighbours.
    forms = [(name, getattr(normalizers, name)()) for name in ("NFC", "NFD", "NFKC", "NFKD")]
    apart = {0x11930}
    for c in ALL:
        for name, form in forms:
            for text in (chr(c), "a\u0300" + chr(c) + "\u0334"):
                if form.normalize_str(text) != unicodedata.normalize(name, text):
                    apart.add(c)
    newer = {c for c in ALL if unicodedata.category(chr(c)) == "Cn"}
    # Characters that a newer utf8proc may know.
    write_ranges("NormalizationApart", apart | newer,
                 "Characters that the library's normal forms leave alone.")


main()
