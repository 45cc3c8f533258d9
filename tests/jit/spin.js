// A little work for V8's compilers.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function mix(all) { let sum = 0; for (const one of all) sum = (sum * 31 + one) | 0; return sum }
const all = Array.from({ length: 1000 }, (_, index) => index)
let total = 0
for (let round = 0; round < 800; round++) {
    total += fib(22)
    for (let again = 0; again < 20; again++) total ^= mix(all)
}
console.log(total)
