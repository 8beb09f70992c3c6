# 流式压测：用线程池并发请求，统计 TTFT（首 token 延迟）与 E2E（端到端延迟）的分位数
# 依赖：pip install requests
import json
import time
from concurrent.futures import ThreadPoolExecutor

import requests

URL = "http://127.0.0.1:8000/v1/chat/completions"
MODEL = "Qwen/Qwen2.5-7B-Instruct"
CONCURRENCY = 8  # 并发数
NUM_REQUESTS = 32  # 请求总数
PROMPTS = [
    "用三句话解释什么是 PagedAttention。",
    "帮我写一首关于秋天的五言绝句。",
    "列出三条提高推理吞吐量的方法。",
    "把下面这句话翻译成英文：今天的天气很好，适合出去走走。",
]


def percentile(values, p):
    """最近邻分位数"""
    values = sorted(values)
    index = min(len(values) - 1, int(round(p / 100 * (len(values) - 1))))
    return values[index]


def run_one(i):
    """发送一次流式请求，返回 (TTFT, E2E, 收到的片段数)"""
    payload = {
        "model": MODEL,
        "messages": [{"role": "user", "content": PROMPTS[i % len(PROMPTS)]}],
        "temperature": 0.7,
        "max_tokens": 64,
        "stream": True,
    }
    start = time.perf_counter()
    first_token_at = None
    chunks = 0
    with requests.post(URL, json=payload, stream=True, timeout=300) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line:
                continue
            line = line.decode("utf-8")
            if not line.startswith("data:"):
                continue
            data = line[len("data:"):].strip()
            if data == "[DONE]":
                break
            delta = json.loads(data)["choices"][0]["delta"]
            if delta.get("content"):
                if first_token_at is None:
                    first_token_at = time.perf_counter()
                chunks += 1
    end = time.perf_counter()
    return first_token_at - start, end - start, chunks


def main():
    begin = time.perf_counter()
    with ThreadPoolExecutor(max_workers=CONCURRENCY) as pool:
        results = list(pool.map(run_one, range(NUM_REQUESTS)))
    total = time.perf_counter() - begin

    ttft = [r[0] for r in results]
    e2e = [r[1] for r in results]
    chunks = sum(r[2] for r in results)
    print(f"请求数：{len(results)}，并发：{CONCURRENCY}，总耗时：{total:.2f} s")
    print(f"吞吐：{len(results) / total:.2f} req/s，{chunks / total:.2f} chunks/s")
    for name, values in (("TTFT", ttft), ("E2E", e2e)):
        print(
            f"{name}：P50 {percentile(values, 50) * 1000:.1f} ms，"
            f"P90 {percentile(values, 90) * 1000:.1f} ms，"
            f"P99 {percentile(values, 99) * 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
