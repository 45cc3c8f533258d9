// The two Wishbone interfaces of VexRiscv: the first word of a read comes after LATENCY cycles, the others of its burst
// in one cycle each; a write is acknowledged after one cycle.
#pragma once

#include "Vtb.h"
#include "memory.h"

class Port {
public:
    // Returns whether the transfer of this cycle is acknowledged in it.
    bool acknowledge(bool request, bool write, unsigned cycle_type)
    {
        if (!request) {
            waited = 0;
            return false;
        }
        if (waited < (write ? 1 : LATENCY)) {
            waited++;
            return false;
        }
        if (cycle_type != BURST)
            waited = 0;
        return true;
    }

private:
    static constexpr unsigned LATENCY = 4;
    // Wishbone's cycle type identifier of an incrementing burst that continues.
    static constexpr unsigned BURST = 2;

    unsigned waited = 0;
};

class Bus {
public:
    void sample(Vtb &tb, Memory &memory)
    {
        tb.i_ack = instructions.acknowledge(tb.i_request, false, tb.i_type);
        tb.i_data = memory.read(tb.i_address << 2);
        tb.d_ack = data.acknowledge(tb.d_request, tb.d_write, tb.d_type);
        tb.d_data = memory.read(tb.d_address << 2);
        if (tb.d_ack && tb.d_write)
            memory.write(tb.d_address << 2, tb.d_written, tb.d_select);
        tb.eval();
    }

    void drive(Vtb &) const {}

private:
    Port instructions, data;
};
