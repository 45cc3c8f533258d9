// PicoRV32's look-ahead interface: memory answers in the next cycle, always.
#pragma once

#include "Vtb.h"
#include "memory.h"

class Bus {
public:
    void sample(Vtb &tb, Memory &memory)
    {
        if (tb.mem_la_read)
            data = memory.read(tb.mem_la_addr);
        if (tb.mem_la_write)
            memory.write(tb.mem_la_addr, tb.mem_la_wdata, tb.mem_la_wstrb);
    }

    void drive(Vtb &tb) const { tb.mem_rdata = data; }

private:
    uint32_t data = 0;
};
