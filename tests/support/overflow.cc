// What a sanitizer has something to say about: undefined behaviour, or two threads that do not wait
// for each other.
#include <climits>
#include <thread>

int main(int argc, char**) {
  static int number = INT_MAX;
  std::thread other([&] { number += argc; });
  number += argc;
  other.join();
  return 0;
}
