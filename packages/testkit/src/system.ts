import { findSystemProgram, type SystemPackage } from '../../../scripts/system.mjs'

/** The path of a program that npm cannot bring. Tests install nothing themselves. */
export function systemProgram(name: SystemPackage): string {
  const path = findSystemProgram(name)
  if (path === undefined) throw new Error(`${name} is missing. Run: node scripts/system.mjs ${name}`)
  return path
}
