package transport

// Extensions returns the names of the SFTP extensions that the server behind f offers, sorted, as it
// sent them; none for files that are not reached by SFTP.
func Extensions(f FS) []string {
	s, ok := f.(sftpFiles)
	if !ok {
		return nil
	}
	return s.Extensions()
}
