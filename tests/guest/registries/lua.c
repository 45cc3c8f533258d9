// Lua compiles and runs a script, and catches its error.
#include <lua.h>
#include <stdint.h>
#include <string.h>

static const char script[] =
    "local primes, text = {}, ''\n"
    "for n = 2, 120 do\n"
    "  local prime = true\n"
    "  for _, p in function(list, i) i = (i or 0) + 1; if list[i] then return i, list[i] end end, primes do\n"
    "    if n % p == 0 then prime = false break end\n"
    "  end\n"
    "  if prime then primes[#primes + 1] = n; text = text .. n .. ' ' end\n"
    "end\n"
    "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
    "local half = setmetatable and 1 or 0.5\n"
    "for i = 1, 40 do half = half * 1.25 + i / 3 end\n"
    "total = #text * 1000 + fib(11) + half // 1\n"
    "local nothing = nil\n"
    "return nothing.field\n";

static union {
    long double aligned;
    char bytes[1 << 20];
} heap;
static size_t used;

// Each block is new; what is released is not used again.
static void *allocate(void *opaque, void *old, size_t old_size, size_t size)
{
    (void)opaque;
    if (size == 0)
        return NULL;
    if (old && size <= old_size)
        return old;
    size_t end = used + (size + 15) / 16 * 16;
    if (end > sizeof heap.bytes)
        return NULL;
    char *memory = heap.bytes + used;
    used = end;
    if (old)
        memcpy(memory, old, old_size);
    return memory;
}

static const char *read(lua_State *state, void *data, size_t *size)
{
    (void)state;
    int *pieces = data;
    *size = (*pieces)-- > 0 ? sizeof script - 1 : 0;
    return script;
}

int main(void)
{
    lua_State *state = lua_newstate(allocate, NULL);
    int pieces = 1;
    if (!state || lua_load(state, read, &pieces, "script", NULL) != LUA_OK)
        return 1;
    if (lua_pcall(state, 0, 0, 0) != LUA_ERRRUN)
        return 2;
    size_t size;
    const char *message = lua_tolstring(state, -1, &size);
    uint32_t sum = (uint32_t)size;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + (unsigned char)message[i];
    lua_getglobal(state, "total");
    return (int)(sum + (uint32_t)lua_tonumberx(state, -1, NULL));
}
