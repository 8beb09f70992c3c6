"""What schemathesis is told beside /openapi.json, through SCHEMATHESIS_HOOKS: the model that every request asks for, and
which refusals are for what no schema says."""

import os

import schemathesis

MODEL = os.environ["OCTAVO_SERVED_MODEL"]
# Two fields that do not go together, lengths in tokens or bytes, and what a template says of a conversation.
BETWEEN_FIELDS = {"min_tokens", "n", "best_of", "continue_final_message"}
TWO_NAMES = "mean the same and differ"  # of one field of a message
OF_LENGTHS = {"context_length_exceeded", "too_many_prompts"}
OF_THE_MODEL = {"template_error", "unsupported"}


def pinned(holder, name):
    if isinstance(holder, dict) and isinstance(holder.get(name), str):
        holder[name] = MODEL
    return holder


@schemathesis.hook
def map_body(context, body):
    return pinned(body, "model")


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return pinned(path_parameters, "id")


@schemathesis.check
def what_the_schema_allows_is_taken(ctx, response, case):
    if not case.meta or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    error = response.json()["error"]
    if error["param"] in BETWEEN_FIELDS or error["code"] in OF_LENGTHS | OF_THE_MODEL:
        return
    if TWO_NAMES in error["message"]:
        return
    raise AssertionError(f"allowed by the schema and refused: {error}")
