// Ibex. An instruction's cycles are those in the ID/EX stage.
module tb #(
    parameter int RV32M = int'(ibex_pkg::RV32MFast),
    parameter bit BranchTargetALU = 0,
    parameter bit WritebackStage = 0,
    parameter bit BranchPredictor = 0,
    parameter bit ICache = 0
) (
    input  logic        clk,
    input  logic        resetn,
    output logic        instr_req,
    output logic [31:0] instr_addr,
    input  logic        instr_rvalid,
    input  logic [31:0] instr_rdata,
    output logic        data_req,
    output logic        data_we,
    output logic [3:0]  data_be,
    output logic [31:0] data_addr,
    output logic [31:0] data_wdata,
    input  logic        data_rvalid,
    input  logic [31:0] data_rdata,
    output logic        occupied,
    output logic [31:0] pc,
    output logic        leaves,
    output logic        has_caches,
    output logic        instruction_refill,
    output logic        data_refill
);
    ibex_top #(
        .RV32M(ibex_pkg::rv32m_e'(RV32M)),
        .BranchTargetALU(BranchTargetALU),
        .WritebackStage(WritebackStage),
        .BranchPredictor(BranchPredictor),
        .ICache(ICache)
    ) top (
        .clk_i(clk),
        .rst_ni(resetn),
        .test_en_i(1'b0),
        .ram_cfg_i('0),
        .hart_id_i(32'b0),
        .boot_addr_i(32'b0),
        .instr_req_o(instr_req),
        .instr_gnt_i(1'b1),
        .instr_rvalid_i(instr_rvalid),
        .instr_addr_o(instr_addr),
        .instr_rdata_i(instr_rdata),
        .instr_rdata_intg_i(7'b0),
        .instr_err_i(1'b0),
        .data_req_o(data_req),
        .data_gnt_i(1'b1),
        .data_rvalid_i(data_rvalid),
        .data_we_o(data_we),
        .data_be_o(data_be),
        .data_addr_o(data_addr),
        .data_wdata_o(data_wdata),
        .data_wdata_intg_o(),
        .data_rdata_i(data_rdata),
        .data_rdata_intg_i(7'b0),
        .data_err_i(1'b0),
        .irq_software_i(1'b0),
        .irq_timer_i(1'b0),
        .irq_external_i(1'b0),
        .irq_fast_i(15'b0),
        .irq_nm_i(1'b0),
        .scramble_key_valid_i(1'b0),
        .scramble_key_i('0),
        .scramble_nonce_i('0),
        .scramble_req_o(),
        .debug_req_i(1'b0),
        .crash_dump_o(),
        .double_fault_seen_o(),
        .fetch_enable_i(ibex_pkg::IbexMuBiOn),
        .alert_minor_o(),
        .alert_major_internal_o(),
        .alert_major_bus_o(),
        .core_sleep_o(),
        .scan_rst_ni(1'b1)
    );

    assign occupied = top.u_ibex_core.instr_valid_id;
    assign pc = top.u_ibex_core.pc_id;
    assign leaves = top.u_ibex_core.instr_id_done;
    assign has_caches = 0;
    assign instruction_refill = 0;
    assign data_refill = 0;
endmodule
