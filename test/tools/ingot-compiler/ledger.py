"""The ledger of an artifact: ledger.py LEDGER WHOLE [PLAIN], all JSON of inspect;
ledger.py --passes TABLE LEDGER: `debug passes` shows each step beside its pass.

ledger.py --by-hand LEDGER STEP EVAL: the step is what `ingot eval --against` found.

With PLAIN, the same artifact made without an evaluation text: all segments but the
ledger are equal.
"""
import json
import sys

if sys.argv[1] == "--passes":
    rows = [line.split() for line in open(sys.argv[2])]
    for step in json.load(open(sys.argv[3]))["measurements"]:
        shown = [row[-5:] for row in rows if step["step"] in row[:2] and row[-1] == "%"]
        assert shown == [[f"{step['perplexity']:.4f}", f"{step['mean_kl']:.6f}", f"{step['p99_kl']:.6f}",
                          f"{100 * step['top1_agreement']:.2f}", "%"]], (step, shown)
    # The import is no pass; what was measured behind one stands in its row.
    assert [row[0] for row in rows if len(row) > 4 and row[-1] == "%"] == ["compress"] * 2 + ["ledger"]
    sys.exit()
if sys.argv[1] == "--by-hand":
    (step,) = [s for s in json.load(open(sys.argv[2]))["measurements"] if s["step"] == sys.argv[3]]
    found = json.load(open(sys.argv[4]))
    assert found["predicted_tokens"] == json.load(open(sys.argv[2]))["evaluation"]["tokens"]
    for field in ("perplexity", "mean_kl", "p99_kl", "top1_agreement"):
        assert abs(step[field] - found[field]) <= 1e-5 * step[field], (field, step, found)
    assert step["mean_kl"] > 1e-6
    kl = sum(w["kl"] for w in found["by_window"]) / found["predicted_tokens"]
    assert abs(kl - found["mean_kl"]) <= 1e-9, (kl, found)
    sys.exit()
ledger, whole = (json.load(open(path)) for path in sys.argv[1:3])
segments = {s["kind"]: s["xxh3"] for s in whole["segments"]}
if len(sys.argv) > 3:
    plain = {s["kind"]: s["xxh3"] for s in json.load(open(sys.argv[3]))["segments"]}
    assert plain.pop("ledger") != segments.pop("ledger")
    assert plain == segments, (plain, segments)
    sys.exit()

steps = ledger["measurements"]
assert [s["step"] for s in steps] == ["import", "quantize-weights", "quantize-kv"]
first, weights, last = steps
assert first["mean_kl"] == 0 and first["top1_agreement"] == 1
assert 0 < weights["mean_kl"] < last["mean_kl"], "steps are cumulative"
assert weights["artifact_bytes"] < first["artifact_bytes"]
for step in steps:
    assert step["perplexity"] > 1 and step["measure_seconds"] > 0
assert len({s["plan"] for s in steps}) == 3
# The plan that was measured last is the one in the artifact.
assert last["plan"] == segments["plan"], (last["plan"], segments)
assert ledger["evaluation"]["text"] != ledger["calibration"]["text"]
assert ledger["conversions"] and ledger["kv_cache"]
assert whole["ledger"] == ledger
