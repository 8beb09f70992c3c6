"""A server of OpenAI's API without a model, for tests of its clients: asyncio and nothing else.

Each answer has as many tokens as were asked for, " tok" each. A prompt or message that contains a word of FAULTS gets
that fault instead.
"""
import asyncio
import json
import sys

FAULTS = {"fault-429", "fault-500", "fault-cut", "fault-done", "fault-empty", "fault-event", "fault-garbage", "fault-hang",
          "fault-plain"}
MODEL = "stub"
METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="a } b",engine="0"} RUNNING
vllm:num_requests_waiting{model_name="a } b",engine="0"} 0
vllm:kv_cache_usage_perc{model_name="a } b",engine="0"} 0.25
process_resident_memory_bytes 104857600
process_cpu_seconds_total CPU
"""


class StubApi:
    """requests: the bodies that came, in their order; most_running: answers under way at once."""

    def __init__(self, metrics=True, usage=True, gap_s=0.0, key=None, tokens_per_event=1):
        self.tokens_per_event = tokens_per_event
        self.metrics, self.usage, self.gap_s, self.key = metrics, usage, gap_s, key
        self.requests, self.running, self.most_running, self.scrapes = [], 0, 0, 0
        self.hanging = 0  # connections whose answer never comes, as long as they are open
        self.server = None

    async def start_unix(self, path):
        self.server = await asyncio.start_unix_server(self.serve, path)
        return "unix:" + path

    async def start_tls(self, context):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=context)
        return "https://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=4096)
        return "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while await self.answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        headers = {k.lower(): v for k, v in (l.split(": ", 1) for l in head.split("\r\n")[1:] if l)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if self.key and headers.get("authorization") != "Bearer " + self.key:
            return self.plain(writer, "401 Unauthorized", {"error": {"message": "no such key"}})
        if path == "/v1/models":
            return self.plain(writer, "200 OK", {"data": [{"id": MODEL}]})
        if path == "/metrics" and self.metrics:
            self.scrapes += 1
            return self.plain(writer, "200 OK", self.metrics_text(), "text/plain")
        if method != "POST" or path not in ("/v1/completions", "/v1/chat/completions"):
            return self.plain(writer, "404 Not Found", {"error": {"message": "no such path"}})
        return await self.complete(reader, writer, path, json.loads(body))

    def metrics_text(self):
        return METRICS.replace("RUNNING", str(self.running)).replace("CPU", str(self.scrapes))

    def plain(self, writer, status, answer, kind="application/json"):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        return True

    async def complete(self, reader, writer, path, body):
        self.requests.append(body)
        asked = json.dumps(body.get("prompt") or body.get("messages"))
        fault = next((f for f in FAULTS if f in asked), None)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if fault in ("fault-429", "fault-500"):
                return self.plain(writer, fault[-3:] + " Sorry", {"error": {"message": "asked for it"}})
            if fault == "fault-plain":
                return self.plain(writer, "200 OK", {"choices": [{"text": "not a stream"}]})
            return await self.stream(reader, writer, "chat" in path, body, fault)
        finally:
            self.running -= 1

    async def stream(self, reader, writer, chat, body, fault):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        def send(event):
            data = b"data: " + (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n\n"
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))

        if fault == "fault-hang":
            self.hanging += 1
            await reader.read()  # until the client goes
            self.hanging -= 1
            return False
        count = body.get("max_tokens", 4)
        if fault in ("fault-done", "fault-empty"):
            if fault == "fault-done":
                send(b"[DONE]")
            writer.write(b"0\r\n\r\n")
            return True
        if chat:
            send({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        for i in range(0, count, self.tokens_per_event):
            await asyncio.sleep(self.gap_s)
            last = "length" if i + self.tokens_per_event >= count else None
            text = " tok" * min(self.tokens_per_event, count - i)
            choice = {"delta": {"content": text}} if chat else {"text": text}
            send({"choices": [{"index": 0, **choice, "finish_reason": last}]})
            await writer.drain()
            if i == 0 and fault == "fault-cut":
                return False
            if i == 0 and fault == "fault-event":
                send({"error": {"message": "broke on the way"}})
            if i == 0 and fault == "fault-garbage":
                send(b"{not JSON")
        if self.usage:
            prompt = body.get("prompt", "")
            words = len(prompt) if isinstance(prompt, list) else len(json.dumps(body.get("messages") or prompt).split())
            send({"choices": [], "usage": {"prompt_tokens": words, "completion_tokens": count,
                                           "prompt_tokens_details": {"cached_tokens": min(words, 2)}}})
        send(b"[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def main():
    gap_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    print(await StubApi(gap_s=gap_s).start(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
