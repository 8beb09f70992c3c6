// Answers several prompts at once, then streams one, then holds a short conversation.
//
//   offline_batch MODEL          MODEL: a GGUF file or a short name, such as smollm2-135m
#include <iostream>

#include "llm/llm.h"

namespace {

void print(const octavo::RequestOutput& output) {
  if (output.error) {
    std::cout << "failed: " << output.error->message << "\n";
    return;
  }
  std::cout << output.prompt.value_or("") << " ->" << output.outputs[0].text << "\n";
}

void run(octavo::LLM& llm) {
  octavo::SamplingParams params;
  params.temperature = 0;
  params.max_tokens = 20;

  // All prompts are computed together. One that cannot be answered fails alone.
  const std::vector<octavo::Prompt> prompts = {"The capital of France is", "Once upon a time",
                                               std::vector<octavo::TokenId>()};
  for (const octavo::RequestOutput& output : llm.generate(prompts, params)) print(output);

  // The answer as it is written.
  octavo::Stream stream = llm.stream({"The sky is"}, params);
  while (const auto event = stream.next()) std::cout << event->text << std::flush;
  std::cout << "\n";

  // A system message that many conversations share is computed once and kept.
  const octavo::ChatMessage system = {"system", "You are brief."};
  const auto answer = llm.chat({system, {"user", "Name a colour."}}, params);
  print(answer);

  const octavo::EngineMetrics metrics = llm.get_metrics();
  std::cout << metrics.scheduler.num_steps << " steps, " << metrics.prefix_cache.prompts.hit_tokens
            << " prompt tokens out of the cache\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: offline_batch MODEL\n";
    return 2;
  }
  octavo::LLM llm({.model = argv[1]});
  run(llm);
  return 0;
} catch (const octavo::LLMError& error) {
  std::cerr << error.what() << "\n";
  return octavo::exit_code(error.error().code);
}
