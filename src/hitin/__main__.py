from hitin.cli import main

main()
