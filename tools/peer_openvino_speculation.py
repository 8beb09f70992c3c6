#!/usr/bin/env python3
"""What prompt lookup gains in OpenVINO GenAI; run by the interpreter of an environment that has it.

    peer_openvino_speculation.py MODEL [--threads 2] [--repeat 3] [--output-len 96] < prompts.json

prompts.json is {task: [[token ids], ...]}, as `compare_speculation --prompts` writes it. Two pipelines, with and without,
answer in turns, greedily. Prints the same rows as compare_speculation.
"""

import argparse
import json
import statistics
import sys
import time

import numpy
import openvino
import openvino_genai as genai


def pipeline(options, lookup):
    scheduler = genai.SchedulerConfig()
    scheduler.cache_size, scheduler.enable_prefix_caching = 1, False
    more = {"prompt_lookup": True} if lookup else {}
    return genai.LLMPipeline(options.model, "CPU", scheduler_config=scheduler,
                             INFERENCE_NUM_THREADS=options.threads, **more)


def answer(pipe, ids, options, lookup):
    """(tokens, tokens after the first event, their seconds)"""
    config = genai.GenerationConfig()
    config.max_new_tokens, config.do_sample = options.output_len, False
    if lookup:
        config.num_assistant_tokens, config.max_ngram_size = options.num_assistant_tokens, options.max_ngram_size
    tensor = openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
    mask = openvino.Tensor(numpy.ones((1, len(ids)), dtype=numpy.int64))
    result = pipe.generate(genai.TokenizedInputs(tensor, mask), config)
    tokens = list(result.tokens[0])
    metrics = result.perf_metrics
    seconds = metrics.get_generate_duration().mean / 1000 - metrics.get_ttft().mean / 1000
    return tokens, len(tokens) - 1, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output-len", type=int, default=96)
    parser.add_argument("--num-assistant-tokens", type=int, default=5)
    parser.add_argument("--max-ngram-size", type=int, default=3)
    options = parser.parse_args()
    tasks = json.load(sys.stdin)
    lanes = [("off", False, pipeline(options, False)), ("prompt lookup", True, pipeline(options, True))]
    for task, prompts in tasks.items():
        speeds, texts = {}, {}
        for turn in range(options.repeat + 1):  # one that does not count
            for name, lookup, pipe in lanes:
                answers = [answer(pipe, ids, options, lookup) for ids in prompts]
                texts.setdefault(name, [a[0] for a in answers])
                if turn:
                    speeds.setdefault(name, []).append(sum(a[1] for a in answers) / sum(a[2] for a in answers))
        for name, _, _ in lanes:
            ratio = statistics.median(a / b for a, b in zip(speeds[name], speeds["off"]))
            same = sum(a == b for a, b in zip(texts[name], texts["off"]))
            print(f"{task:8} {name:24} {statistics.median(speeds[name]):8.1f} tok/s {ratio:6.2f} x  same answers: "
                  f"{same} of {len(prompts)}", flush=True)


if __name__ == "__main__":
    main()
