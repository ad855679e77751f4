"""A family that Ingot does not know: a small llama under other names throughout."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys

source, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
acme = scratch / "acme"
shutil.copytree(source / "test/models/draft", acme)

KEYS = {"hidden_size": "width", "num_hidden_layers": "depth"}
TENSORS = {"model.layers.": "acme.blocks.", "model.embed_tokens": "acme.words"}


def renamed(text, table):
    for before, after in table.items():
        text = text.replace(before, after)
    return text


def write(name, value):
    (scratch / name).write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return str(scratch / name)


def compile(code, messages, *arguments):
    out = scratch / "out.ingot"
    out.unlink(missing_ok=True)
    done = subprocess.run(["ingot-compiler", "compile", "-o", out, "--levels", "x86-64-v3",
                           "--name", "acme", *map(str, arguments)], capture_output=True, text=True)
    for message in messages:
        if message not in done.stdout + done.stderr:
            sys.exit(f"{arguments}: {message!r} is not in {done.stdout + done.stderr}")
    if done.returncode != code:
        sys.exit(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return out.read_bytes() if code == 0 else b""


# The model: other names in the config and in the header of the weights.
config = json.loads((acme / "config.json").read_text())
config = {KEYS.get(key, key): value for key, value in config.items()}
config.update(model_type="acme", architectures=["AcmeForCausalLM"])
(acme / "config.json").write_text(json.dumps(config))
weights = (acme / "model.safetensors").read_bytes()
size, = struct.unpack("<Q", weights[:8])
header = json.loads(weights[8:8 + size])
header = json.dumps({renamed(key, TENSORS): value for key, value in header.items()}).encode()
(acme / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header +
                                         weights[8 + size:])

# Its descriptor: that of llama, renamed alike.
llama = json.loads((source / "compiler/architectures/llama.json").read_text())
mine = dict(llama, family="acme", about="A test's own family.")
mine.pop("gguf")
side = mine["huggingface"]
side.update(names=["acme"], architectures=["AcmeForCausalLM"])
side["config"] = {KEYS.get(key, key): rule for key, rule in side["config"].items()}
side["tensors"] = {role: renamed(name, TENSORS) for role, name in side["tensors"].items()}
good = write("acme.json", mine)

# Without it the family is unknown; with it the weights, the plan and the code are llama's.
compile(3, ['"acme"', "known:", "llama"], acme)
made = compile(0, [], acme, "--descriptor", good)
assert len(made) > 0

# One's own descriptor of a built-in family comes before it.
own = json.loads((source / "compiler/architectures/llama.json").read_text())
del own["huggingface"]["config"]["hidden_act"]
compile(2, ["unknown config keys: \"hidden_act\""], source / "test/models/tiny-llama",
        "--descriptor", write("own.json", own))

# A wrong descriptor: where and what.
compile(2, ["none.json"], acme, "--descriptor", scratch / "none.json")
compile(2, ["broken.json", "line 3"], acme, "--descriptor",
        write("broken.json", '{\n "family": "acme",\n "about" 1\n}'))
compile(2, ["extra.json", "unknown key \"colour\""], acme, "--descriptor",
        write("extra.json", dict(mine, colour="red")))
wrong = json.loads(json.dumps(mine))
wrong["huggingface"]["config"]["width"]["field"] = "breadth"
compile(2, ["field.json", "huggingface.config.width", "unknown field \"breadth\""], acme,
        "--descriptor", write("field.json", wrong))
wrong = json.loads(json.dumps(mine))
wrong["huggingface"]["tensors"]["layer.{i}.nose"] = "nose.{i}"
compile(2, ["role.json", "unknown role \"layer.{i}.nose\""], acme, "--descriptor",
        write("role.json", wrong))
wrong = json.loads(json.dumps(mine))
del wrong["huggingface"]["tensors"]["layer.{i}.down"]
compile(2, ["hole.json", "role \"layer.{i}.down\" is missing"], acme, "--descriptor",
        write("hole.json", wrong))

# A model that the descriptor does not cover: every unknown key, tensor and shape at once.
config.update(nose_length=7, ear_count=2, intermediate_size=config["intermediate_size"] + 8)
(acme / "config.json").write_text(json.dumps(config))
names = json.loads(header)
first = names.pop("acme.words.weight")
names["acme.letters.weight"] = first
header = json.dumps(names).encode()
body = (acme / "model.safetensors").read_bytes()
size, = struct.unpack("<Q", body[:8])
(acme / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + body[8 + size:])
compile(2, ["unknown config keys: \"ear_count\", \"nose_length\"",
            "unknown tensors: \"acme.letters.weight\" [",
            "missing tensors: \"acme.words.weight\"",
            "wrong shapes: \"acme.blocks.0.mlp.gate_proj.weight\" expected ["], acme,
        "--descriptor", good)
