export class Interrupted extends Error {
  readonly code: number
}
export interface Questions {
  text(question: string, offered: string, check?: (answer: string) => string): Promise<string>
  choice(question: string, choices: readonly string[]): Promise<string>
  yes(question: string): Promise<boolean>
  close(): void
}
export function openQuestions(streams: { input: NodeJS.ReadableStream; output: NodeJS.WritableStream }): Questions
