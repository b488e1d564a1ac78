module holdfast.example/load

go 1.22
