// A hash table with open addressing: insertions, look-ups, removals.
#include "../random.h"

enum { SLOTS = 1024 };

static struct slot {
    uint32_t key, value;
} slots[SLOTS];

static uint32_t mix(uint32_t key)
{
    key ^= key >> 16;
    key *= 0x85ebca6b;
    key ^= key >> 13;
    key *= 0xc2b2ae35;
    return key ^ key >> 16;
}

static struct slot *find(uint32_t key)
{
    for (uint32_t i = mix(key);; i++) {
        struct slot *slot = &slots[i % SLOTS];
        if (slot->key == key || slot->key == 0)
            return slot;
    }
}

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t key = random_word() % 700 + 1;
        struct slot *slot = find(key);
        if (slot->key == 0) {
            slot->key = key;
            slot->value = i;
        } else {
            slot->value += key;
            sum = sum * 31 + slot->value;
        }
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        sum ^= mix(slots[i].key) + slots[i].value;
    return (int)sum;
}
