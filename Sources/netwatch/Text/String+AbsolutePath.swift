internal import Foundation

extension String {
    /// The path, relative to the working directory if it is not absolute. The service prints such paths to the users of
    /// other commands, who do not know its working directory.
    var absolutePath: String {
        if hasPrefix("/") { return self }
        return FileManager.default.currentDirectoryPath + "/"
            + (hasPrefix("./") ? String(dropFirst(2)) : self)
    }
}
