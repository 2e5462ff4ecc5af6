export function selfTest(): { name: string; problem: string | undefined }[] {
  return []
}
