import ToolSupport

CrashGuard.arm()
await ProfilectlTool.tool.main()
