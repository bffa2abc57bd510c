try {
  tips();
  tables();
  commands();
  plots();
} catch (error) {
  failed(error);
}
