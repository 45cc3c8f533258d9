// An interpreter of a small bytecode: a dense switch in a loop.
#include <stdint.h>

enum op { PUSH, ADD, SUB, MUL, DUP, SWAP, OVER, DROP, LOAD, STORE, BRANCH, LOOP, XOR, SHIFT, NOT, HALT };

static const uint8_t program[] = {
    PUSH, 1, STORE, 0, PUSH, 200, STORE, 1,
    /* 8: */ LOAD, 0, DUP, MUL, LOAD, 1, ADD, DUP, SHIFT, 3, XOR, STORE, 0,
    /* 21: */ LOAD, 0, PUSH, 1, OVER, SUB, SWAP, DROP, NOT, STORE, 2,
    /* 32: */ LOAD, 2, LOAD, 0, ADD, STORE, 0, LOOP, 1, 8, HALT,
};

static uint32_t interpret(uint32_t seed)
{
    uint32_t stack[16], variables[4] = {seed, 0, 0, 0}, top = 0;
    const uint8_t *pc = program;
    for (;;) {
        uint32_t held;
        switch ((enum op)*pc++) {
        case PUSH: stack[top++] = *pc++; break;
        case ADD: top--; stack[top - 1] += stack[top]; break;
        case SUB: top--; stack[top - 1] -= stack[top]; break;
        case MUL: top--; stack[top - 1] *= stack[top]; break;
        case DUP: stack[top] = stack[top - 1]; top++; break;
        case SWAP: held = stack[top - 1]; stack[top - 1] = stack[top - 2]; stack[top - 2] = held; break;
        case OVER: stack[top] = stack[top - 2]; top++; break;
        case DROP: top--; break;
        case LOAD: stack[top++] = variables[*pc++]; break;
        case STORE: variables[*pc++] = stack[--top]; break;
        case BRANCH: pc = program + *pc; break;
        case LOOP:
            if (--variables[*pc])
                pc = program + pc[1];
            else
                pc += 2;
            break;
        case XOR: top--; stack[top - 1] ^= stack[top]; break;
        case SHIFT: stack[top - 1] >>= *pc++; break;
        case NOT: stack[top - 1] = ~stack[top - 1]; break;
        case HALT: return variables[0] ^ variables[2];
        }
    }
}

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t seed = 0; seed < 2; seed++)
        sum = sum * 31 + interpret(seed);
    return (int)sum;
}
