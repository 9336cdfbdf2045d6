internal import NetwatchEventLoop

extension LockFile {
    /// Takes the lock of a socket path, `<socket>.lock`.
    static func taking(socket path: String) throws(ControlSocketError) -> LockFile {
        do {
            return try LockFile.taking(path + ".lock")
        } catch {
            switch error {
            case .held(let owner): throw .inUse(path: path, pid: owner)
            case .system(let error): throw .system(error)
            }
        }
    }
}
