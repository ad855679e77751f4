#!/usr/bin/env python3
"""The real OpenAI client against `ingot serve` on a model of test/models.

    openai_client.py --bin DIR [--compiler FILE] [--python PYTHON]

Exit code 77 where the package `openai` cannot be imported: a skip. With
--python, that interpreter is tried where this one lacks the package.
"""
import argparse
import concurrent.futures
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "test/bench"))

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--bin", type=pathlib.Path, required=True)
parser.add_argument("--compiler", type=pathlib.Path, help="default: ingot-compiler of --bin")
parser.add_argument("--python", type=pathlib.Path)
options = parser.parse_args()
COMPILER = options.compiler or options.bin / "ingot-compiler"

try:
    import openai
except ImportError:
    if options.python and options.python.exists():
        if subprocess.run([options.python, "-c", "import openai"],
                          capture_output=True).returncode == 0:
            os.execv(options.python, [str(options.python), *sys.argv])
    print("the Python package openai is not installed")
    sys.exit(77)

from served import Ingot, compile_model  # noqa: E402

KEY = "a-key-for-the-test"
PROMPT = "KING RICHARD III:\n"
MESSAGES = [{"role": "user", "content": "What say you?"}]


class OpenaiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        artifact = compile_model(COMPILER, SOURCE / "test/models/target",
                                 folder / "target.ingot", "--quantize", "int8")
        encoder = compile_model(COMPILER, SOURCE / "test/models/encoders/bert",
                                folder / "bert.ingot", "--quantize", "f32")
        cls.artifact = encoder
        (folder / "keys").write_text(f"tester {KEY}\n")
        cls.server = Ingot(options.bin / "ingot", f"target={artifact}", f"other={artifact}",
                           f"bert={encoder}",
                           "--api-key-file", folder / "keys", "--sequences", 8, "--threads", 2)
        cls.client = openai.OpenAI(base_url=cls.server.url() + "/v1", api_key=KEY,
                                   max_retries=0)

    @classmethod
    def tearDownClass(cls):
        try:
            # It drains, and every block is back.
            used = cls.server.metric("ingot_kv_cache_blocks_used")
            assert used == 0, used
            code = cls.server.terminate()
            assert code == 0, (code, cls.server.text())
        finally:
            cls.server.__exit__()
            cls.folder.cleanup()

    def complete(self, **fields):
        fields = {"model": "target", "prompt": PROMPT, "max_tokens": 24, "seed": 7, **fields}
        return self.client.completions.create(**fields)

    def chat(self, **fields):
        fields = {"model": "target", "messages": MESSAGES, "max_tokens": 24, "seed": 7, **fields}
        return self.client.chat.completions.create(**fields)

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], ["target", "other", "bert"])
        self.assertEqual(self.client.models.retrieve("other").id, "other")
        # The same file under two names: the same answer.
        self.assertEqual(self.complete().choices[0].text,
                         self.complete(model="other").choices[0].text)

    def test_embeddings(self):
        texts = ["the cat sat on the mat", "a dog", "it is in it"]
        # The client asks for base64 and decodes it; both forms are what `ingot embed` prints.
        packed = self.client.embeddings.create(model="bert", input=texts)
        plain = self.client.embeddings.create(model="bert", input=texts, encoding_format="float",
                                              dimensions=32, user="u")
        printed = subprocess.run([options.bin / "ingot", "embed", self.artifact, *texts],
                                 capture_output=True, text=True, check=True).stdout
        for i, line in enumerate(printed.splitlines()):
            expected = [float(x) for x in line.split()]
            self.assertEqual([float(f"{x:.9g}") for x in packed.data[i].embedding],
                             [float(f"{struct.unpack('f', struct.pack('f', x))[0]:.9g}")
                              for x in expected])
            self.assertEqual(plain.data[i].embedding, expected)
            self.assertEqual(plain.data[i].index, i)
        self.assertEqual(packed.usage.prompt_tokens, 8 + 4 + 6)
        # Alone as together, and by ids as by text.
        alone = self.client.embeddings.create(model="bert", input=texts[1])
        self.assertEqual(alone.data[0].embedding, packed.data[1].embedding)
        # [CLS] [SEP] is a text too.
        empty = self.client.embeddings.create(model="bert", input="")
        self.assertEqual(empty.usage.prompt_tokens, 2)
        for fields in (dict(model="target", input="a"),
                       dict(model="bert", input=["a"] * 2049),
                       dict(model="bert", input="a " * 400),
                       dict(model="bert", input="a", dimensions=16)):
            with self.assertRaises(openai.BadRequestError):
                self.client.embeddings.create(**fields)
        with self.assertRaises(openai.BadRequestError):
            self.client.completions.create(model="bert", prompt="a")

    def test_completion(self):
        answer = self.complete(temperature=0)
        self.assertEqual(answer.object, "text_completion")
        self.assertEqual(answer.usage.completion_tokens, 24)
        self.assertEqual(answer.usage.total_tokens,
                         answer.usage.prompt_tokens + 24)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.choices[0].text, self.complete(temperature=0).choices[0].text)

    def test_completion_stream_is_the_whole(self):
        for fields in ({"temperature": 0}, {"temperature": 1.0}, {"n": 3, "temperature": 0.9},
                       {"logprobs": 3}, {"echo": True, "logprobs": 2}, {"stop": ["e", "\n"]},
                       {"presence_penalty": 1, "frequency_penalty": 0.5},
                       {"logit_bias": {"10": -100}},
                       {"extra_body": {"top_k": 20, "min_p": 0.01, "repetition_penalty": 1.2}}):
            whole = self.complete(**fields)
            texts = [""] * len(whole.choices)
            tokens = [[] for _ in whole.choices]
            logprobs = [[] for _ in whole.choices]
            reasons = [None] * len(whole.choices)
            usage = None
            for chunk in self.complete(stream=True, stream_options={"include_usage": True},
                                       **fields):
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    texts[choice.index] += choice.text
                    reasons[choice.index] = choice.finish_reason or reasons[choice.index]
                    if choice.logprobs:
                        tokens[choice.index] += choice.logprobs.tokens
                        logprobs[choice.index] += choice.logprobs.token_logprobs
            self.assertEqual(texts, [c.text for c in whole.choices], fields)
            self.assertEqual(reasons, [c.finish_reason for c in whole.choices], fields)
            self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
            if "logprobs" in fields:
                self.assertEqual(tokens, [c.logprobs.tokens for c in whole.choices])
                self.assertEqual(logprobs, [c.logprobs.token_logprobs for c in whole.choices])

    def test_chat_stream_is_the_whole(self):
        for fields in ({"temperature": 0}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}):
            whole = self.chat(**fields)
            texts = [""] * len(whole.choices)
            roles = [None] * len(whole.choices)
            for chunk in self.chat(stream=True, **fields):
                for choice in chunk.choices:
                    roles[choice.index] = choice.delta.role or roles[choice.index]
                    texts[choice.index] += choice.delta.content or ""
            self.assertEqual(texts, [c.message.content for c in whole.choices])
            self.assertEqual(roles, ["assistant"] * len(roles))

    def test_chat_logprobs(self):
        choice = self.chat(logprobs=True, top_logprobs=3, temperature=0).choices[0]
        joined = b"".join(bytes(token.bytes) for token in choice.logprobs.content)
        self.assertTrue(joined.startswith(choice.message.content.encode()))
        for token in choice.logprobs.content:
            self.assertEqual(len(token.top_logprobs), 3)
            # Greedy: the token is the most likely one.
            self.assertEqual(token.token, token.top_logprobs[0].token)
            self.assertLessEqual(token.logprob, 0)

    def test_echoed_logprobs(self):
        answer = self.complete(prompt="Your answer: Yes", max_tokens=0, echo=True, logprobs=1)
        choice = answer.choices[0]
        self.assertEqual(choice.text, "Your answer: Yes")
        self.assertEqual(answer.usage.completion_tokens, 0)
        self.assertEqual(len(choice.logprobs.token_logprobs), answer.usage.prompt_tokens)
        self.assertIsNone(choice.logprobs.token_logprobs[0])
        self.assertEqual("".join(choice.logprobs.tokens), choice.text)
        # The prompt of one is the output of another: the same numbers.
        made = self.complete(temperature=0, max_tokens=8, logprobs=1).choices[0]
        echoed = self.complete(prompt=PROMPT + made.text, max_tokens=0, echo=True,
                               logprobs=1).choices[0]
        if echoed.logprobs.tokens[-8:] == made.logprobs.tokens:
            self.assertEqual(echoed.logprobs.token_logprobs[-8:], made.logprobs.token_logprobs)

    def test_n_and_seeds(self):
        texts = [c.text for c in self.complete(n=4, seed=42, temperature=1).choices]
        self.assertEqual(len(set(texts)), 4)
        self.assertEqual(texts, [c.text for c in
                                 self.complete(n=4, seed=42, temperature=1).choices])
        # Copy i is the request with seed + i.
        self.assertEqual(texts[2], self.complete(seed=44, temperature=1).choices[0].text)
        fresh = {self.complete(seed=openai.NOT_GIVEN if hasattr(openai, "NOT_GIVEN") else None,
                               temperature=1).choices[0].text for _ in range(3)}
        self.assertEqual(len(fresh), 3)

    def test_prompts_in_one_request(self):
        prompts = ["First", "KING", "O, "]
        together = self.complete(prompt=prompts, temperature=0)
        for prompt, choice in zip(prompts, together.choices):
            self.assertEqual(choice.text,
                             self.complete(prompt=prompt, temperature=0).choices[0].text)

    def test_together_as_alone(self):
        requests = [dict(seed=seed, temperature=seed % 3 * 0.5,
                         prompt=PROMPT + "Now " * (seed % 40)) for seed in range(24)]
        alone = [self.complete(**fields).choices[0].text for fields in requests]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            together = list(pool.map(lambda f: self.complete(**f).choices[0].text, requests))
        self.assertEqual(alone, together)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(tools=[{"type": "function", "function": {"name": "f"}}])
        self.assertIn("tools", str(caught.exception))
        with self.assertRaises(openai.BadRequestError):
            self.chat(response_format={"type": "json_object"})
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(logit_bias={"191222": -100})
        self.assertIn("191222", str(caught.exception))
        self.assertIn("1024", str(caught.exception))
        with self.assertRaises(openai.NotFoundError):
            self.complete(model="missing")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.url() + "/v1", api_key="wrong-key",
                          max_retries=0).models.list()
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="word " * 5000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError):
            self.complete(prompt="")  # this vocabulary has no BOS

    def test_leaving_a_stream(self):
        stream = self.complete(max_tokens=900, stream=True,
                               extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        for _ in range(200):
            if self.server.metric("ingot_num_requests_running") == 0:
                return
        self.fail("the request still runs")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
