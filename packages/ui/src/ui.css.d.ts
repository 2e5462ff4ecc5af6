// So that TypeScript takes the import of the style sheet.
export {}
