// The request-grant-valid interface of Ibex and CV32E40P: granted at once, answered in the next cycle.
#pragma once

#include "Vtb.h"
#include "memory.h"

class Bus {
public:
    void sample(Vtb &tb, Memory &memory)
    {
        instruction_valid = tb.instr_req;
        if (tb.instr_req)
            instruction = memory.read(tb.instr_addr);
        data_valid = tb.data_req;
        if (tb.data_req) {
            data = memory.read(tb.data_addr);
            if (tb.data_we)
                memory.write(tb.data_addr, tb.data_wdata, tb.data_be);
        }
    }

    void drive(Vtb &tb) const
    {
        tb.instr_rvalid = instruction_valid;
        tb.instr_rdata = instruction;
        tb.data_rvalid = data_valid;
        tb.data_rdata = data;
    }

private:
    bool instruction_valid = false, data_valid = false;
    uint32_t instruction = 0, data = 0;
};
