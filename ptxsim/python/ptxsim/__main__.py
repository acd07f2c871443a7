from ptxsim._files import main

main()
