"""What the tests of agent frameworks share: the environment of scripts/test-frameworks.txt, and a server whose model says
what the last message says, so that a test decides what the model answers and when it calls a tool."""

import os
import sys
from pathlib import Path

import venv

venv.enter("test-frameworks.txt")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))
# Nothing is looked up or reported elsewhere: the packages must do with this machine.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1", "HF_HUB_OFFLINE": "1",
               "HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false", "ANONYMIZED_TELEMETRY": "False"}

from serving import ServedCase  # noqa: E402

# Shows tools and gives the marks of Qwen 3 away. The stub repeats what stands after the last bos_token.
TEMPLATE = ("{# <tool_call> </think> #}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ bos_token }}"
            "{{ m.reasoning_content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
            "{{ c.function.arguments | tojson }}{% endfor %}{{ m.content or '' }}{% endfor %}{{ eos_token }}")
TEXT = "Two roads diverged in a wood, and I took the one less travelled by."
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
WEATHER = "12 degrees in Paris"  # what the tool says, and so the model after it
TOO_LONG = "word " * 20_000  # the stub has 4096 tokens, a byte each


def weather(city: str) -> str:
    """The weather of a city."""
    return f"12 degrees in {city}"


class EchoCase(ServedCase):
    FLAGS = ("--echo", "--chat-template", TEMPLATE, "--enable-auto-tool-choice")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = cls.server.url + "/v1"
        cls.model = cls.server.model


