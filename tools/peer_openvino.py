#!/usr/bin/env python3
"""Measures OpenVINO GenAI for compare_peers; run by the interpreter of an environment that has it.

    peer_openvino.py --model FILE --threads N --kv u8 --max-batched 512 TOKENS:DEPTH:BATCH ...

One case an argument: BATCH 0 reads a prompt of TOKENS; else BATCH sequences generate TOKENS each after a prompt of DEPTH.
Prints one line of JSON: the version, and tokens per second in the order asked.
"""

import argparse
import json
import random
import time

import numpy
import openvino
import openvino_genai as genai


class Pipeline:
    def __init__(self, options):
        scheduler = genai.SchedulerConfig()
        scheduler.cache_size = options.cache_gb
        scheduler.enable_prefix_caching = False
        scheduler.max_num_batched_tokens = options.max_batched
        scheduler.max_num_seqs = 64
        scheduler.dynamic_split_fuse = True
        properties = {"INFERENCE_NUM_THREADS": options.threads, "KV_CACHE_PRECISION": options.kv}
        self.pipeline = genai.ContinuousBatchingPipeline(options.model, scheduler, "CPU", properties)
        self.random = random.Random(1)
        self.requests = 0

    def prompt(self, tokens):
        return openvino.Tensor(numpy.array([[self.random.randrange(1000, 40000) for _ in range(tokens)]], dtype=numpy.int64))

    def start(self, prompt_tokens, new_tokens):
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = new_tokens, True, False
        self.requests += 1
        return self.pipeline.add_request(self.requests, self.prompt(prompt_tokens), config)

    def run(self, batch, prompt_tokens, new_tokens):
        """[time of each token] of each sequence, and the start."""
        handles = [self.start(prompt_tokens, new_tokens) for _ in range(batch)]
        times = [[] for _ in handles]
        started = time.perf_counter()
        while any(len(t) < new_tokens for t in times):
            self.pipeline.step()
            now = time.perf_counter()
            for handle, seen in zip(handles, times):
                while handle.can_read():
                    for output in handle.read().values():
                        seen += [now] * len(output.generated_ids)
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
        return started, times


def prefill(pipeline, tokens):
    started, times = pipeline.run(1, tokens, 2)
    return tokens / (times[0][0] - started)


def decode(pipeline, tokens, depth, batch):
    """From the moment when every sequence has its first token to the first end."""
    _, times = pipeline.run(batch, max(depth, 1), tokens + 1)
    begin, end = max(t[0] for t in times), min(t[-1] for t in times)
    counted = sum(sum(begin < moment <= end for moment in t) for t in times)
    return counted / (end - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--kv", default="u8")
    parser.add_argument("--max-batched", type=int, default=512)
    parser.add_argument("--cache-gb", type=int, default=2)
    parser.add_argument("cases", nargs="+", metavar="TOKENS:DEPTH:BATCH")
    options = parser.parse_args()
    pipeline = Pipeline(options)
    pipeline.run(1, 32, 4)
    speeds = []
    for case in options.cases:
        tokens, depth, batch = map(int, case.split(":"))
        speeds.append(decode(pipeline, tokens, depth, batch) if batch else prefill(pipeline, tokens))
    print(json.dumps({"version": f"{genai.__version__} on OpenVINO {openvino.__version__}", "tok_s": speeds}))


if __name__ == "__main__":
    main()
