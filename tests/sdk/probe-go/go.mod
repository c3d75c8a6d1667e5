module probe

go 1.19

require reconciled v0.0.0

replace reconciled => ../../../sdk/go
