internal import Glibc

/// Runs a shell command and waits for its end. Terminates the process if the command fails.
package func shell(_ command: String) {
    guard system(command) == 0 else { fatalError("failed: \(command)") }
}

/// Returns the output of a shell command without the last line break. Terminates the process if the command fails.
package func contents(ofCommand command: String) -> String {
    guard let text = output(ofCommand: command) else { fatalError("failed: \(command)") }
    return text
}

/// Returns the output of a shell command without the last line break, or `nil` if the command fails.
func output(ofCommand command: String) -> String? {
    guard let file = popen(command, "re") else { fatalError("failed: \(command)") }
    let text = contents(file)
    return pclose(file) == 0 ? String(text.dropLast()) : nil
}

/// Returns the contents of a file, or an empty string if the file cannot be opened.
package func contents(_ path: String) -> String {
    guard let file = fopen(path, "re") else { return "" }
    defer { fclose(file) }
    return contents(file)
}

private func contents(_ file: UnsafeMutablePointer<FILE>) -> String {
    var bytes = [UInt8](repeating: 0, count: 8192)
    var text: [UInt8] = []
    while case let count = fread(&bytes, 1, bytes.count, file), count > 0 { text += bytes[..<count] }
    return String(decoding: text, as: UTF8.self)
}
