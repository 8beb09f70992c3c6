// What `octavo tune` reads if it is given no text: a little of everything that models write.
#pragma once

#include <string_view>

namespace octavo::cli {

inline constexpr std::string_view kTuningText = R"text(The harbour lies in a bay that opens to the
west, so that in the evening the light comes straight over the water and into the streets. Most of
the houses near the quay were built after the great fire, when the town council decided that roofs
must be of slate and that every second lane should be wide enough for a cart with a pump. Today the
fish market is gone, and the long hall where it was held is a library. Children read there after
school, and on Saturdays a retired captain explains how ships found their way before there were
satellites: by the height of the sun at noon, by the time that a good clock kept, and by a great
deal of patience.

Question: Why does bread rise?
Answer: Yeast is a living thing. When it is mixed with flour and warm water, it feeds on the sugar
in the flour and gives off a gas, carbon dioxide. The dough is elastic, because kneading has joined
its proteins into a net, and so the gas is caught in small bubbles. In the oven the bubbles grow
until the crust is firm, and the bread keeps its shape.

To plant a tree, follow these steps:
1. Dig a hole that is twice as wide as the roots and just as deep.
2. Loosen the earth at the bottom and mix it with some compost.
3. Set the tree upright, spread its roots, and fill the hole again.
4. Press the earth down with your foot, and water it well.
5. Tie the stem to a stake, loosely, so that it can move in the wind.

def mean(values):
    """Returns the mean of a list of numbers."""
    if not values:
        raise ValueError("the list is empty")
    total = 0
    for value in values:
        total += value
    return total / len(values)


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("the stack is empty")
        return self.items.pop()

Dear Mrs. Keller,

thank you for your letter of the third of March. We are sorry to hear that the lamp arrived with a
crack in its shade. A new one was sent to you this morning, and it should be with you within four
working days. You need not return the old one. If there is anything else that we can do for you,
please call us on any weekday between nine and five.

With kind regards,
Thomas Brandt

{"name": "Anna", "age": 34, "city": "Lisbon", "languages": ["Portuguese", "English", "French"]}
{"name": "Peter", "age": 51, "city": "Vienna", "languages": ["German", "English"]}
{"name": "Maria", "age": 28, "city": "Madrid", "languages": ["Spanish", "English", "Italian"]}

| planet | diameter (km) | moons |
|---|---|---|
| Mercury | 4,879 | 0 |
| Venus | 12,104 | 0 |
| Earth | 12,756 | 1 |
| Mars | 6,792 | 2 |

The old woman looked at the boy for a long time. "You have come a long way," she said at last.
"I have," said the boy. "They told me in the village that you know where the river begins."
"Everybody knows where the river begins. It begins in the mountains."
"But nobody has been there."
She laughed and put another piece of wood on the fire. "No," she said, "nobody has been there. And
do you know why? Because the way is long, and because most people, when they are told where a thing
is, are content with that."

In summary, there are three reasons to prefer the train. First, it is faster than the car on all
routes between the larger cities. Second, it uses less energy for each passenger. Third, the time
that is spent on it is not lost, since one can read, work or sleep. Its main disadvantage is the
price, which for a family of four is often higher than the cost of fuel.
)text";

}  // namespace octavo::cli
