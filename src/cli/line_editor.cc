#include "cli/line_editor.h"

#include <histedit.h>
#include <locale.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cwchar>

namespace octavo::cli {
namespace {

constexpr int kHistoryLength = 1000;
// Terminals mark what is pasted when they are asked to.
constexpr std::string_view kMarkPastes = "\x1b[?2004h", kMarkNoPastes = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnds = L"\x1b[201~";
constexpr size_t kMaxPaste = size_t{1} << 20;

void ask_terminal(std::string_view what) {
  if (::write(STDOUT_FILENO, what.data(), what.size()) < 0) return;  // then it shows nothing anyway
}

// Enter in a pasted text comes as a carriage return.
std::wstring with_newlines(const std::wstring& text) {
  std::wstring out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_pair = text[i] == L'\r' && i + 1 < text.size() && text[i + 1] == L'\n';
    if (!is_pair && text[i] != L'\0') out += text[i] == L'\r' ? L'\n' : text[i];
  }
  return out;
}

}  // namespace

struct LineEditor::Impl {
  Impl();
  ~Impl();

  static Impl& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }
  static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }
  static unsigned char on_interrupt(EditLine* editor, int);
  static unsigned char on_suspend(EditLine* editor, int);
  static unsigned char on_newline(EditLine* editor, int);
  static unsigned char on_paste(EditLine* editor, int);

  locale_t locale, previous_locale;
  EditLine* editor;
  History* history_of_run;
  HistEvent event = {};
  std::string prompt;
  bool dropped = false;
};

LineEditor::Impl::Impl()
    : locale(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
      previous_locale(::uselocale(locale)),
      editor(el_init("octavo", stdin, stdout, stderr)),
      history_of_run(history_init()) {
  history(history_of_run, &event, H_SETSIZE, kHistoryLength);
  history(history_of_run, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_PROMPT, &show_prompt);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_HIST, history, history_of_run);
  // Narrow names would be copied, and never freed.
  el_wset(editor, EL_ADDFN, L"octavo-interrupt", L"drop the line", &on_interrupt);
  el_wset(editor, EL_ADDFN, L"octavo-suspend", L"stop until the shell goes on", &on_suspend);
  el_wset(editor, EL_ADDFN, L"octavo-newline", L"begin a new line", &on_newline);
  el_wset(editor, EL_ADDFN, L"octavo-paste", L"take pasted text", &on_paste);
  el_set(editor, EL_BIND, "\\e^M", "octavo-newline", nullptr);
  el_set(editor, EL_BIND, "\\e^J", "octavo-newline", nullptr);
  el_set(editor, EL_BIND, "\\e[200~", "octavo-paste", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(editor, nullptr);
  // Keys like others while a line is edited; at other times they are signals.
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  el_set(editor, EL_BIND, "^C", "octavo-interrupt", nullptr);
  el_set(editor, EL_BIND, "^Z", "octavo-suspend", nullptr);
}

LineEditor::Impl::~Impl() {
  el_end(editor);
  history_end(history_of_run);
  ::uselocale(previous_locale);
  if (locale) ::freelocale(locale);
}

unsigned char LineEditor::Impl::on_interrupt(EditLine* editor, int) {
  const LineInfo* line = el_line(editor);
  if (line->lastchar == line->buffer) return CC_EOF;
  of(editor).dropped = true;
  el_push(editor, "\n");  // Enter knows how to leave a line of any length
  return CC_NORM;
}

// The library's own handler gives the terminal back before the program stops, and takes it again.
unsigned char LineEditor::Impl::on_suspend(EditLine*, int) {
  ::raise(SIGTSTP);
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::on_newline(EditLine* editor, int) {
  return el_insertstr(editor, "\n") == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::Impl::on_paste(EditLine* editor, int) {
  std::wstring text;
  wchar_t c = 0;
  while (!text.ends_with(kPasteEnds) && el_wgetc(editor, &c) == 1) {
    if (text.size() > kMaxPaste) text.erase(0, text.size() - kPasteEnds.size());
    text += c;
  }
  if (text.ends_with(kPasteEnds)) text.resize(text.size() - kPasteEnds.size());
  return el_winsertstr(editor, with_newlines(text).c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

LineEditor::LineEditor() : impl_(std::make_unique<Impl>()) {}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(std::string_view prompt) {
  impl_->prompt = prompt;
  ask_terminal(kMarkPastes);
  // Left to itself the library shows the prompt first, and a key typed in between is the system's.
  el_set(impl_->editor, EL_PREP_TERM, 1);
  std::optional<std::string> text;
  do {
    impl_->dropped = false;
    int length = 0;
    const char* line = el_gets(impl_->editor, &length);
    text = line && length > 0 ? std::optional(std::string(line, static_cast<size_t>(length)))
                              : std::nullopt;
  } while (text && impl_->dropped);
  ask_terminal(kMarkNoPastes);
  if (text && text->ends_with('\n')) text->pop_back();
  return text;
}

void LineEditor::remember(const std::string& text) {
  history(impl_->history_of_run, &impl_->event, H_ENTER, text.c_str());
}

}  // namespace octavo::cli
