"""A search whose proposals come from a language model, within a limit of tokens for all of it."""

from dataclasses import dataclass

from shared_attempt import START, Attempt
from shared_prompt import code_of, prompt

from common.python.machine.description import variables_of
from common.python.report.llm import Answer, NoAnswer, ask, service_of, tokens_of

MOST_ANSWER = 8192  # tokens
LEAST_ANSWER = 512


def service_from(provider, base_url, model):
    """The service that the flags name, or its variables where there is no flag; None where the environment has no key for it."""
    flags = {"BASE_URL": base_url, "MODEL": model}
    given = variables_of(f"{provider.upper()}_") | {name: text for name, text in flags.items() if text}
    return service_of(given, {}) if provider == "anthropic" else service_of({}, given)


@dataclass
class Asker:
    """A service, how many tokens of prompts and answers may still be spent, and whether a prompt was too long for them."""

    service: object
    left: int
    full: bool = False

    def ask(self, text):
        """The answer, and why there is none: then its text is "". None where a prompt and a short answer are beyond the limit."""
        if self.left < tokens_of(text) + LEAST_ANSWER:
            self.full = True
            return None
        service = self.service.limited(min(MOST_ANSWER, self.left - tokens_of(text)))
        try:
            answer, why = ask(service, text), ""
        except NoAnswer as failure:
            answer, why = Answer("", tokens_of(text)), str(failure)
        self.left -= answer.tokens
        return answer, why


def asked_search(pair, judge, asker, attempts, out):
    """Up to `attempts` attempts as they are judged; prompt, answer and source of each are kept in its folder in `out`."""
    best, best_source, made = START, pair.source(), []
    while len(made) < attempts and [attempt.status for attempt in made[-2:]] != ["NO_ANSWER"] * 2:
        text, folder = prompt(pair, best, best_source, made), out / f"attempt_{len(made) + 1:03}"
        if (asked := asker.ask(text)) is None:
            return
        answer, why = asked
        folder.mkdir()
        (folder / "prompt.md").write_text(text)
        (folder / "answer.md").write_text(answer.text)
        refused = ("NO_ANSWER", why) if why else ("NO_CODE", "found no fenced code block; expected the whole file in one")
        verdict = judge(len(made) + 1, code) if (code := code_of(answer.text)) else refused
        made.append(Attempt(len(made) + 1, best.number, {}, *verdict, tokens=answer.tokens))
        yield made[-1]
        if made[-1].status == "PASSED" and made[-1].low > best.speedup:
            best, best_source = made[-1], code
