// The technology-dependent cells that Ibex instantiates, as plain logic.
module prim_buf #(
    parameter int Width = 1
) (
    input  logic [Width-1:0] in_i,
    output logic [Width-1:0] out_o
);
    assign out_o = in_i;
endmodule

module prim_flop #(
    parameter int Width = 1,
    parameter logic [Width-1:0] ResetValue = 0
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
    always_ff @(posedge clk_i or negedge rst_ni)
        if (!rst_ni) q_o <= ResetValue;
        else q_o <= d_i;
endmodule

// The clock is never gated: the core does not sleep while a program runs.
module prim_clock_gating (
    input  logic clk_i,
    input  logic en_i,
    input  logic test_en_i,
    output logic clk_o
);
    assign clk_o = clk_i;
endmodule

// Single-port memory that is read in a cycle.
module prim_ram_1p
    import prim_ram_1p_pkg::*;
#(
    parameter int Width = 32,
    parameter int Depth = 128,
    parameter int DataBitsPerMask = 1,
    parameter MemInitFile = "",
    localparam int Aw = $clog2(Depth)
) (
    input  logic             clk_i,
    input  logic             req_i,
    input  logic             write_i,
    input  logic [Aw-1:0]    addr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic [Width-1:0] wmask_i,
    output logic [Width-1:0] rdata_o,
    input  ram_1p_cfg_t      cfg_i
);
    logic [Width-1:0] words[Depth];
    always_ff @(posedge clk_i)
        if (req_i) begin
            if (write_i) words[addr_i] <= (words[addr_i] & ~wmask_i) | (wdata_i & wmask_i);
            else rdata_o <= words[addr_i];
        end
endmodule
