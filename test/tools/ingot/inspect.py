"""ingot inspect of models with and without sliding windows."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)


def ran(*arguments):
    return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, check=True,
                          timeout=600).stdout


# (model, what its config is changed to, the effective window of each layer)
cases = [("tiny-mistral", {}, [64, 64]),
         ("tiny-mistral", {"sliding_window": None}, [0, 0]),
         ("tiny-qwen2", {}, [0, 0]),  # use_sliding_window is false
         ("tiny-qwen2", {"use_sliding_window": True, "max_window_layers": 28}, [0, 0]),
         ("tiny-qwen2", {"use_sliding_window": True, "max_window_layers": 1}, [0, 32]),
         ("families/gemma3-six", {}, [40, 40, 40, 40, 40, 0])]
for number, (model, changes, windows) in enumerate(cases):
    folder = scratch / str(number)
    shutil.copytree(models / model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    artifact, stages = scratch / f"{number}.ingot", scratch / f"{number}.stages"
    ran("ingot-compiler", "compile", folder, "-o", artifact, "--quantize", "int8", "--levels",
        "x86-64-v3", "--save-stages", stages)
    layers = json.loads(ran("ingot", "inspect", artifact, "--json"))["model"]["layers"]
    found = [layer["window"] for layer in layers]
    assert found == windows, (model, changes, found)
    text = ran("ingot", "inspect", artifact)
    lines = re.findall(r"^  ([0-9]+)(?:-([0-9]+))? .*; window (none|[0-9]+);", text, re.M)
    found = [0 if window == "none" else int(window) for first, last, window in lines
             for _ in range(int(first), int(last or first) + 1)]
    assert found == windows, (model, changes, text)
    plan = (stages / "4-lower.mlir").read_text()
    found = [int(window) for window in re.findall(r"plan\.attention .* window = ([0-9]+)", plan)]
    assert found == windows, (model, changes, found)

# Which layers have experts, how many, and how many each token goes to.
for number, model in enumerate(["mixtral", "qwen3-moe-mixed"]):
    config = json.loads((models / "families" / model / "config.json").read_text())
    count = config.get("num_local_experts", config.get("num_experts"))
    dense = set(config.get("mlp_only_layers", []))
    step = config.get("decoder_sparse_step", 1)
    want = [None if layer in dense or (layer + 1) % step else
            {"count": count, "each_token": config["num_experts_per_tok"]}
            for layer in range(config["num_hidden_layers"])]
    artifact = scratch / f"experts{number}.ingot"
    ran("ingot-compiler", "compile", models / "families" / model, "-o", artifact,
        "--levels", "x86-64-v3")
    layers = json.loads(ran("ingot", "inspect", artifact, "--json"))["model"]["layers"]
    found = [layer["experts"] for layer in layers]
    assert found == want, (model, found, want)
    told = f"{config['num_experts_per_tok']} of {count} experts"
    assert told in ran("ingot", "inspect", artifact), model
