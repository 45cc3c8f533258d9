// Lua executes a script: tables, strings, closures, coroutines, errors, floating point.
#include "heap.h"
#include "text.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

static const char script[] =
    "local words, order = {}, {}\n"
    "for word in text:gmatch('%a+') do\n"
    "  if not words[word] then words[word] = 0; order[#order + 1] = word end\n"
    "  words[word] = words[word] + 1\n"
    "end\n"
    "table.sort(order, function(a, b)\n"
    "  return words[a] > words[b] or words[a] == words[b] and a < b\n"
    "end)\n"
    "local function primes(limit)\n"
    "  return coroutine.wrap(function()\n"
    "    local sieve = {}\n"
    "    for n = 2, limit do\n"
    "      if not sieve[n] then\n"
    "        coroutine.yield(n)\n"
    "        for multiple = n * n, limit, n do sieve[multiple] = true end\n"
    "      end\n"
    "    end\n"
    "  end)\n"
    "end\n"
    "local sum, mean = 0, 0.0\n"
    "for prime in primes(200) do sum = sum + prime; mean = mean + 1 / prime end\n"
    "for _, word in ipairs(order) do print(string.format('%-8s %3d', word, words[word])) end\n"
    "print(sum, mean, pcall(error, 'no harm'))\n";

// A checksum of what is printed.
static uint32_t printed;

static int put(char byte, FILE *file)
{
    (void)file;
    printed = printed * 31 + (unsigned char)byte;
    return (unsigned char)byte;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdin = &console;
FILE *const stdout = &console;
FILE *const stderr = &console;

// What the C library's files and signals end in, which the script does not use.
#define ABSENT(name) \
    int name(void)   \
    {                \
        return -1;   \
    }

ABSENT(open)
ABSENT(close)
ABSENT(read)
ABSENT(write)
ABSENT(lseek)
ABSENT(getpid)
ABSENT(kill)

_Noreturn void _exit(int status)
{
    (void)status;
    __builtin_trap();
}

static void *allocate(void *opaque, void *memory, size_t old, size_t size)
{
    (void)opaque;
    void *moved = NULL;
    if (size > 0) {
        moved = heap_take(size);
        if (!moved)
            return NULL;
        if (memory)
            memcpy(moved, memory, old < size ? old : size);
    }
    if (memory)
        heap_release(memory, old);
    return moved;
}

int main(void)
{
    static char text[600];
    fill_with_text(text, sizeof text);
    lua_State *state = lua_newstate(allocate, NULL);
    if (!state)
        return 1;
    luaL_requiref(state, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(state, LUA_COLIBNAME, luaopen_coroutine, 1);
    luaL_requiref(state, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(state, LUA_STRLIBNAME, luaopen_string, 1);
    lua_pushlstring(state, text, sizeof text);
    lua_setglobal(state, "text");
    if (luaL_loadbuffer(state, script, sizeof script - 1, "script") != LUA_OK || lua_pcall(state, 0, 0, 0) != LUA_OK)
        return 2;
    lua_close(state);
    return (int)printed;
}
