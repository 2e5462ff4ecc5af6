export const root: string
export const bun: string
