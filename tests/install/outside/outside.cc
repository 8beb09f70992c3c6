// What a program of somebody else's does with the library: outside MODEL
#include <llm/llm.h>

#include <iostream>

int main(int, char** argv) {
  octavo::LLM llm({.model = argv[1]});
  octavo::SamplingParams params;
  params.temperature = 0;
  params.max_tokens = 8;
  std::cout << llm.generate("hello", params).outputs[0].text;
}
