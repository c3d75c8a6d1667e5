module reconciled

go 1.19
