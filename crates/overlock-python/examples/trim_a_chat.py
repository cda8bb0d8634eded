"""Trims a chat to the window of its model and prints the calculation."""

import overlock

CHAT = [{"role": "system", "content": "You are a patient gardener."}]
for day in range(40):
    CHAT.append({"role": "user", "content": f"Day {day}: " + "what about the roses? " * 40})
    CHAT.append({"role": "assistant", "content": f"Day {day}: " + "water them in the morning. " * 40})
CHAT.append({"role": "user", "content": "And today?"})


def main() -> None:
    kept = overlock.fit_messages(CHAT, model="gpt-4", max_tokens=1000)
    print(f"{len(kept)} of {len(CHAT)} messages fit, from {kept[1]['content'][:7]!r} on")

    plan = overlock.plan({"model": "gpt-4", "messages": CHAT, "max_tokens": 1000})
    for line in plan.explanation:
        print(line)


if __name__ == "__main__":
    main()
