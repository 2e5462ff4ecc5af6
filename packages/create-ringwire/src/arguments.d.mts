export const usage: string
export class UsageError extends Error {}
export interface Given {
  readonly folder: string | undefined
  readonly flavour: 'react' | 'plain' | undefined
  readonly product: string | undefined
  readonly service: string | undefined
  readonly packages: string | undefined
  readonly port: number
  readonly yes: boolean
  readonly help: boolean
}
export function readArguments(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Given
export function checkProduct(name: string): string
export function productOf(folder: string): string
